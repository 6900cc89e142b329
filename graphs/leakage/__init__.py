"""How much each record leaks at a privacy budget: every route, and the exact value of small models."""
