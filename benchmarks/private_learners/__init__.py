"""Private learners beside each other, beside diffprivlib, and beside no privacy, on the same data."""
