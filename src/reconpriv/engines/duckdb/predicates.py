"""Evaluating SQL over rows that are already public; nothing outside can be reached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa

from reconpriv.engines.duckdb.query_faults import JSON_ERRORS, fault
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Flags


@cache
def _closed_database() -> duckdb.DuckDBPyConnection:
    """One empty database for all evaluators: to make one takes longer than most conditions.

    Each connection to it has tables of its own. It has no thread of its own, and its settings are
    locked.
    """
    return duckdb.connect(
        config={
            "enable_external_access": "false",
            "threads": "1",
            **JSON_ERRORS,
            "lock_configuration": "true",
        }
    )


class Evaluator:
    """A DuckDB connection without access to files or the network, and one table in it."""

    def __init__(self, table: pa.Table, shown: Callable[[str], str] = str) -> None:
        """Take the rows that conditions are about; ``shown`` is a condition as a user writes it."""
        self._shown = shown
        self._rows = table.num_rows
        self._names = table.column_names
        position = pa.array(np.arange(table.num_rows))
        # Columns keep their names, so the position needs one that cannot be among them.
        self._position = "row_position"
        while self._position in (name.lower() for name in table.column_names):
            self._position += "_"
        self._connection = _closed_database().cursor()
        self._connection.register("rows", table.append_column(self._position, position))

    def mask(self, condition: str) -> Flags:
        """Which rows satisfy the condition; an unknown (NULL) does not."""
        found = self._run(
            f"SELECT {self._position} FROM rows WHERE {condition}", "condition", condition
        )
        result = np.zeros(self._rows, dtype=bool)
        result[found.column(0).to_numpy()] = True
        return result

    def values(self, expression: str) -> pa.Array:
        """The value of an expression on every row, in order."""
        query = f"SELECT {expression} FROM rows ORDER BY {self._position}"
        return self._run(query, "expression", expression).column(0).combine_chunks()

    def _run(self, query: str, what: str, shown: str) -> pa.Table:
        try:
            return self._connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            found = fault(str(error), self._names, "release")
            reason = f": {found.what}" if found is not None else ""
            hint = found.hint if found is not None else "Look at its functions and values."
            raise InputError(
                f"The {what} {self._shown(shown)} cannot be evaluated{reason}.", hint=hint
            ) from None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
