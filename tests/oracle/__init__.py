"""An oracle: made tables, made questions, and DuckDB on the original records as the referee.

A release with p = 1 - 1e-12 and without sampling is the original table, so every answer to it has
to be the one that DuckDB gives. ``python -m campaign --only oracle`` asks thousands of questions,
the tests in this folder a few hundred.
"""
