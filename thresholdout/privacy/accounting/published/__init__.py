"""Bounds as published and as quoted, for comparison with the proved ones."""
