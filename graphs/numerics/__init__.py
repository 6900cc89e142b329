"""Numerics that both packages share: rounding to the safe side, scaled numbers, argument checks."""
