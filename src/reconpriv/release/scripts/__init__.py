"""Small programs that go with an export and count as the release does, one language per file."""
