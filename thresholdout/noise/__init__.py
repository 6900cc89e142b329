"""Exact noise on a grid, and where its randomness comes from."""
