"""Ask a holdout many adaptive questions and know what every answer is worth."""
