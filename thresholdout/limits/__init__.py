"""One-sided limits for the truth of one fixed query: exact binomial, relative entropy, bets; behind noisy edges."""
