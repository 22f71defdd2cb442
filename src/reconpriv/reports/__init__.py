"""Two reports as single HTML files: the publisher's stays, the analysts' goes out."""
