"""Choosing a policy: what every combination of its parameters would cost and protect."""
