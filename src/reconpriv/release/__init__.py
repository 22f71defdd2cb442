"""A release on disk: its manifest, its labels, its cells, and what it can be turned into."""
