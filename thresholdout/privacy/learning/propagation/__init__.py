"""Expectation propagation: one site per record, or one shared site, optionally private."""
