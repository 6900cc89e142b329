"""Expectation propagation: one site per record, or one shared site, privately or not."""
