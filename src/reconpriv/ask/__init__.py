"""Questions: what is selected, and what is asked about it."""
