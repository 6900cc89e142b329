"""Reproductions of papers: their figures, tables and experiments, with generated data where theirs is not public."""

MEASUREMENTS = ("audits", "auc", "pbp", "propagation_learning")
