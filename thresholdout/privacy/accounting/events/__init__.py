"""What was done to private records, and what a single such event costs."""
