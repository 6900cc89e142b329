"""What agents and optimisers of programs ask a service, in the protocols that they speak."""
