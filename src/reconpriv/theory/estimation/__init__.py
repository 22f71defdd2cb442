"""Reconstruction, variances and limits."""
