"""The engine that every installation has, for what is small or must happen on this machine.

Everything outside :mod:`reconpriv.engines` that reads files or evaluates SQL takes it from here.
"""

from __future__ import annotations

from reconpriv.engines.duckdb.engine import DuckDBEngine as LocalEngine
from reconpriv.engines.duckdb.engine import read_all
from reconpriv.engines.duckdb.predicates import Evaluator

DIALECT = LocalEngine.name
"""What parsers call the SQL that it evaluates."""

__all__ = ["DIALECT", "Evaluator", "LocalEngine", "read_all"]
