"""Leakage of each record at a privacy budget: every route, and the exact value of small models."""
