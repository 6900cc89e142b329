"""Routes from a guard to a tolerance: one theorem each."""
