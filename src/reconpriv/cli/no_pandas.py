"""Commands start without pandas: they hold no data frames."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class NoPandas(MetaPathFinder):
    """Hide pandas, which is no dependency, from whoever would use it only if it is there.

    PyArrow imports it with the first array of a process: 0.3 seconds. PySpark does need it.
    """

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> None:
        """Refuse pandas; leave everything else to the finders that follow."""
        if fullname == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def start_without_pandas() -> None:
    """From now on, pandas cannot be imported in this process, except for PySpark."""
    sys.meta_path.insert(0, NoPandas())
