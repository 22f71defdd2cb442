"""Noisy tables published beside the records, and what they cost the groups."""
