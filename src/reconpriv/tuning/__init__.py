"""Choosing a policy: what every setting of p, ε, δ and sample size would cost and protect."""
