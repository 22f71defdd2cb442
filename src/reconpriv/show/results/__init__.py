"""Each kind of result as text and as HTML."""
