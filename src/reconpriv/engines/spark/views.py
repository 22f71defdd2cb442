"""Opening a path in Spark, with the types that the other engine gives it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from reconpriv.datasets import with_bundled
from reconpriv.engines.spark.jobs import map_in_arrow, quote
from reconpriv.engines.spark.output import struct
from reconpriv.engines.spark.session import LEAVE_OUT, Session
from reconpriv.engines.spark.tasks import SpelledNumbers
from reconpriv.errors import InputError
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import shown_file
from reconpriv.messages.text_files import not_utf8
from reconpriv.sources.csv_header import SAMPLE, parse_header
from reconpriv.sources.formats import distributed_formats, ending_of, format_of, with_endings

_LOSSLESS = ("BIGINT", "BOOLEAN", "DATE", "TIMESTAMP_NTZ")


def check_path(path: str) -> None:
    """Refuse what Spark cannot read, before a session is started for it."""
    if path == "-":
        raise InputError("Spark cannot read standard input.", hint=LEAVE_OUT)
    known = format_of(path)
    if known is not None and not known.distributed:
        raise InputError(
            f"Spark reads {listed(with_endings(distributed_formats()))} here."
            f" {ending_of(path)} files are read by DuckDB.",
            hint=LEAVE_OUT,
        )


def read_path(session: Session, path: str) -> Any:
    """A Parquet, ORC or CSV path that Spark can read."""
    path = with_bundled(path)
    known = format_of(path)
    kind = None if known is None else known.name
    given = path
    if os.path.exists(path):
        # A bracket or star in the name of an existing file is not a pattern.
        path = re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
    if kind == "csv":
        return _typed_csv(session.spark, path, given)
    if kind == "orc":
        return session.spark.read.orc(path)
    frame = session.spark.read.parquet(path)
    whole = session.spark.read.option("mergeSchema", True).parquet(path)
    if whole.schema.simpleString() != frame.schema.simpleString():
        raise InputError(
            "The Parquet files differ in their columns or types.",
            hint="Give them the same schema, or read them one by one.",
        )
    return frame


def _typed_csv(spark: Any, path: str, given: str) -> Any:
    """Give a column a type only if every text is that type's own spelling.

    ``given`` is the path as the user wrote it; the last part of a URL holds no login.
    """
    shown = shown_file(Path(given).name)
    first, *following = [row.value for row in spark.read.text(path).take(1 + SAMPLE)] or [""]
    if not first:
        raise InputError("The CSV is empty.", hint="A CSV starts with a line of column names.")
    delimiter, _ = parse_header(first.removeprefix("\ufeff"), following, given, shown)
    text = (
        spark.read.option("header", True)
        # Every file must have the same header.
        .option("enforceSchema", False)
        .option("sep", delimiter)
        .option("escape", '"')
        .option("multiLine", True)
        .option("mode", "FAILFAST")
        # An empty field is missing, a quoted empty one is an empty text.
        .option("nullValue", "\x00")
        .csv(path)
    )
    quoted = [quote(name) for name in text.columns]
    checks = [
        f"count_if(CAST(try_cast({name} AS {kind}) AS STRING) IS DISTINCT FROM {name}"
        f" AND {name} IS NOT NULL) = 0 AND count({name}) > 0"
        for name in quoted
        for kind in _LOSSLESS
    ]
    checks += [f"count(try_cast({name} AS DOUBLE)) = count({name})" for name in quoted]
    checks += [" OR ".join(f"count_if(contains({name}, '\\uFFFD')) > 0" for name in quoted)]
    *fits, undecoded = list(
        text.selectExpr(*(f"{check} AS k{i}" for i, check in enumerate(checks))).first()
    )
    if undecoded:
        raise not_utf8(given, shown)
    kinds: dict[str, str] = {}
    for i, name in enumerate(quoted):
        mine = fits[i * len(_LOSSLESS) : (i + 1) * len(_LOSSLESS)]
        kind = next((k for k, fit in zip(_LOSSLESS, mine, strict=True) if fit), None)
        if kind is not None:
            kinds[name] = kind
    perhaps = [
        name
        for name, number in zip(quoted, fits[len(quoted) * len(_LOSSLESS) :], strict=True)
        if number and name not in kinds
    ]
    kinds |= dict.fromkeys(_spelled_numbers(text, perhaps), "DOUBLE")
    return text.selectExpr(
        *(f"CAST({name} AS {kinds[name]}) AS {name}" if name in kinds else name for name in quoted)
    )


def _spelled_numbers(text: Any, names: list[str]) -> list[str]:
    """The columns whose every text is the shortest spelling of its number.

    Spark spells numbers as Java does (1.0E8), so Python checks this on the workers.
    """
    if not names:
        return []
    chosen = text.selectExpr(*(f"{name} AS c{i}" for i, name in enumerate(names)))
    columns = {f"c{i}": "boolean" for i in range(len(names))}
    parts = map_in_arrow(chosen, SpelledNumbers(), struct(columns)).toArrow()
    filled = text.selectExpr(*(f"count({name}) > 0" for name in names)).first()
    return [
        name for i, name in enumerate(names) if filled[i] and all(parts.column(f"c{i}").to_pylist())
    ]
