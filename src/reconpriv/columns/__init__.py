"""What a table is made of: its columns, their kinds, bins and values."""
