"""Two reports as single HTML files: the publisher's is internal, the analysts' can be published."""
