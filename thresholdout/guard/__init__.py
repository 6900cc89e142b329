"""The guard around a holdout, and what it consists of."""
