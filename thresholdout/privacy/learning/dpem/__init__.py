"""Expectation-maximisation with noise on its sufficient statistics: counts, sums and second moments."""
