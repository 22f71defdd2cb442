"""A command as a process: what it prints, and how it ends."""
