"""How records depend on one another, and what that makes of a privacy budget."""
