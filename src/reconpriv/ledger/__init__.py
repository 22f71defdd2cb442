"""What was published with a key, in a file beside it."""
