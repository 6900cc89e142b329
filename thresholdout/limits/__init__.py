"""One-sided limits for the truth of one fixed question: exact binomial, relative entropy, bets; behind noisy edges."""
