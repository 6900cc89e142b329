"""A holdout behind a process boundary: predictions come in, answers go out."""
