"""Expectation-maximisation with noise on what its second half needs: counts, sums and second moments."""
