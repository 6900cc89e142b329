"""Composition of steps of which an epsilon and a delta are known."""
