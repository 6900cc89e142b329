"""Answers of the whole library, as an earlier version gave them."""
