"""Private gradient descent on minibatches: small networks, clipped sums, the loop, and the estimators."""
