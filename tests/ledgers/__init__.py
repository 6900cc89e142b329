"""Ledgers of released formats, which every later version has to read; see `make`."""
