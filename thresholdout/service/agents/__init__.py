"""Access to a service for agents and program optimisers, in the protocols that they speak."""
