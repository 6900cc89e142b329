"""Published statements, for comparison only; nothing builds on them."""
