"""Count queries on raw tables and on releases."""
