"""Columns of a user's DuckDB table as Arrow and Parquet can hold them."""

from __future__ import annotations

import re
from typing import Any

from reconpriv.schema import quote_identifier

# Arrow or Parquet has no type for these; as bytes they can be read, though not published.
_STRANGE = re.compile(r"INTERVAL|BIT|UNION.*|VARIANT|GEOMETRY.*|TIME WITH TIME ZONE|BIGNUM")


def readable_columns(relation: Any) -> dict[str, str]:
    """For each column of a DuckDB relation the expression that reads it without loss."""
    columns = zip(relation.columns, map(str, relation.types), strict=True)
    return {name: _expression(name, kind) for name, kind in columns}


def _expression(name: str, kind: str) -> str:
    quoted = quote_identifier(name)
    if kind.startswith("ENUM") or kind == "UUID":
        return f"{quoted}::VARCHAR AS {quoted}"
    if kind in ("HUGEINT", "UHUGEINT"):
        # DuckDB hands Arrow a different number if it has more digits than this.
        return f"{quoted}::DECIMAL(38, 0) AS {quoted}"
    if _STRANGE.fullmatch(kind):
        return f"encode({quoted}::VARCHAR) AS {quoted}"
    return quoted
