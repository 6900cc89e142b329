"""Gaussian answers: how far they can be from the truth."""
