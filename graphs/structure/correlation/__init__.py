"""Correlation matrices of Gaussian values, each in the form that its structure allows."""
