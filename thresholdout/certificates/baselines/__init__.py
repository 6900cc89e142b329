"""Published statements and splitting, for comparison only; nothing builds on them."""
