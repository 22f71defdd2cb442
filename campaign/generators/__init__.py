"""One file per kind of attack."""
