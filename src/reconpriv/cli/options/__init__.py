"""Options, each declared once."""
