"""Accountants: the total cost of many events, and the noise that a target requires."""
