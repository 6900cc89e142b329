"""What follows from differential privacy for new data."""
