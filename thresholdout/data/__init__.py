"""Checks, hashes and labels of incoming values and records."""
