"""Evaluating a condition over rows that are already public; nothing outside can be reached."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.errors import InputError


class Evaluator:
    """A DuckDB connection without access to files or the network, and one table in it."""

    def __init__(self, table: pa.Table) -> None:
        """Take the rows that conditions are about."""
        self._rows = table.num_rows
        position = pa.array(np.arange(table.num_rows))
        # Columns keep their names, so the position needs one that cannot be among them.
        self._position = "row_position"
        while self._position in (name.lower() for name in table.column_names):
            self._position += "_"
        self._connection = duckdb.connect(
            config={"enable_external_access": "false", "threads": "1"}
        )
        self._connection.register("rows", table.append_column(self._position, position))

    def mask(self, condition: str) -> NDArray[np.bool_]:
        """Which rows satisfy the condition; an unknown (NULL) does not."""
        query = f"SELECT {self._position} FROM rows WHERE {condition}"
        try:
            found = self._connection.execute(query).fetchnumpy()[self._position]
        except duckdb.Error as error:
            reason = str(error).splitlines()[0].split(": ", 1)[-1]
            raise InputError(
                f"The condition cannot be evaluated: {reason}",
                hint="Compare a column with values of its own type.",
            ) from None
        result = np.zeros(self._rows, dtype=bool)
        result[np.asarray(found, dtype=np.int64)] = True
        return result

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()
