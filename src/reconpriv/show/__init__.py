"""Everything that turns a result into something to read."""
