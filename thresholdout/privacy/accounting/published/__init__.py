"""Bounds as published, for comparison: nothing that is certified rests on them."""
