"""Tails of estimates, and the largest sample that is private by them."""
