"""Answers and tables of answers."""
