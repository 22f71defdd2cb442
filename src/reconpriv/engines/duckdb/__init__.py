"""DuckDB: the engine that every installation has."""
