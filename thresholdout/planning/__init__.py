"""Planning: the recommended procedure, expected half-widths, and a guard's parameters."""
