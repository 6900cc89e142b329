"""Lower bounds on what a mechanism or learner leaks, measured instead of believed."""
