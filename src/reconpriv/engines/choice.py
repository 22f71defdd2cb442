"""Which engines there are, and which of them opens a source. No engine is imported until used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.registry import Registry

if TYPE_CHECKING:
    from reconpriv.engines.base import Engine


@dataclass(frozen=True)
class EngineKind:
    """An engine by name: where its ``open_table`` is, and what only it can do.

    ``explanation`` is what help lists: the engine, and on how many machines it runs.
    ``frames`` is the package of the data frames that no other engine counts, ``own_settings`` are
    the arguments of :func:`reconpriv.read` that no other engine understands.
    """

    name: str
    label: str
    explanation: str
    frames: str | None = None
    own_settings: frozenset[str] = frozenset()
    writes_to_uri: bool = False

    def open_table(self, source: Any, settings: Mapping[str, Any]) -> Engine:
        """Import the engine and open the source with it."""
        engine: Engine = import_module(f"reconpriv.engines.{self.name}.engine").open_table(
            source, **settings
        )
        return engine

    def owns(self, source: Any) -> bool:
        """True if the source is one of its own data frames."""
        return self.frames is not None and type(source).__module__.startswith(self.frames)


# The first is used unless another is asked for.
ENGINES = Registry(
    "engine",
    (
        EngineKind("duckdb", "DuckDB", "DuckDB on one machine"),
        EngineKind(
            "spark",
            "Spark",
            "Spark on many",
            frames="pyspark.sql.",
            own_settings=frozenset({"master"}),
            writes_to_uri=True,
        ),
    ),
    InputError,
)


def kind_of_engine(
    source: Any, name: str | None = None, own_settings: Mapping[str, Any] | None = None
) -> EngineKind:
    """The engine asked for by name, by one of its own data frames or by one of its own settings."""
    given = {setting for setting, value in (own_settings or {}).items() if value is not None}
    owner = next((kind for kind in ENGINES.values() if kind.owns(source)), None)
    asked = next((kind for kind in ENGINES.values() if kind.own_settings & given), None)
    usual = owner or asked or next(iter(ENGINES.values()))
    chosen = usual if name is None else ENGINES.find(name)
    if owner not in (None, chosen):
        raise InputError(
            f"A {owner.label} data frame is counted by {owner.label}.",
            hint="Leave engine out, or collect it first.",
        )
    if asked not in (None, chosen):
        (setting, *_) = asked.own_settings & given
        raise InputError(
            f"A {setting} needs the {asked.label} engine.",
            hint=Remedy("add {}", Control.ENGINE, asked.name),
        )
    return chosen


def open_engine(
    source: Any, name: str | None = None, *, master: str | None = None, **settings: Any
) -> Engine:
    """Open a source with the engine that :func:`kind_of_engine` chooses."""
    own = {"master": master}
    kind = kind_of_engine(source, name, own)
    return kind.open_table(
        source, settings | {key: value for key, value in own.items() if key in kind.own_settings}
    )
