"""Estimates and their intervals, from published cells and margins."""
