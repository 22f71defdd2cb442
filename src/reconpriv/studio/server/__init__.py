"""The process behind the page: its socket, its guard, its work in the background."""
