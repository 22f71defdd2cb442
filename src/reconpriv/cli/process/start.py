"""A quick start: no pandas, and only the command that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


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


def with_asked_command(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """The app with the command that the first word names; the whole app if it names none.

    Typer would evaluate the annotations of every command at each start, which takes longer than
    an audit of a small table. Help and completion do need them all.
    """
    asked = [one for one in app.registered_commands if one.name in words[:1]]
    if not asked:
        return app
    small = copy(app)
    small.registered_commands = asked
    return small
