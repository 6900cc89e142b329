"""Variance inflation (design effects): how much wider means of dependent records vary."""
