"""Releases about private records, and the privacy cost of a single one."""
