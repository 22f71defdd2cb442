"""Tables of PostgreSQL, SQLite and DuckDB, counted where they lie."""
