"""Exact noise on a grid, and the sources of its randomness."""
