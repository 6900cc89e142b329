"""Numerics that both packages share: conservative rounding, scaled numbers, argument checks."""
