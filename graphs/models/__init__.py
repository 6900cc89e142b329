"""Models of dependence, one module for each kind."""
