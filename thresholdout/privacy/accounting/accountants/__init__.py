"""Accountants: what many events cost together, and the noise that a target needs."""
