"""One guard, used from several threads and processes."""
