"""A table as counts, and the only source of random numbers."""
