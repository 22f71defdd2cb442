"""One user's work: what was chosen, the key, what is running."""
