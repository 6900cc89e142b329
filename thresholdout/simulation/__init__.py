"""Analysts who reuse a holdout, and what becomes of it with and without a guard."""
