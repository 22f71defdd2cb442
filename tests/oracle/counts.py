"""One count, asked for on every surface that can ask for it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import reconpriv as rp
from oracle.conditions import Two
from oracle.referee import Referee
from oracle.tables import Made, MadeTable
from oracle.values import literal, same_lists, same_values
from reconpriv.answers.batch import read_batch


@dataclass(frozen=True)
class Wanted:
    """Values of one column that are asked for, as text for SQL and as objects of many types."""

    column: Made
    values: tuple[Any, ...]

    @property
    def condition(self) -> Two:
        """The same in SQL."""
        present = [literal(one) for one in self.values if one is not None]
        parts = [f"{{}} IN ({', '.join(present)})"] if len(present) > 1 else []
        parts += [f"{{}} = {present[0]}"] if len(present) == 1 else []
        parts += ["{} IS NULL"] if len(present) < len(self.values) else []
        text = f"({' OR '.join(parts)})" if len(parts) > 1 else parts[0]
        name = self.column.sql
        own = name if self.column.recoded is None else self.column.beside("label")
        return Two(text.replace("{}", name), text.replace("{}", own))

    def given(self, rng: Random) -> Any:
        """The values in some type."""
        if len(self.values) == 1 and rng.random() < 0.6:
            return rng.choice(same_values(self.values[0]))
        return same_lists(rng, self.values)

    @property
    def field(self) -> str | None:
        """The value as a field of a batch file; None if it has no such text."""
        if len(self.values) > 1 or self.values[0] in (None, ""):
            return None
        value = self.values[0]
        return str(value).lower() if isinstance(value, bool) else str(value)


def made_wanted(rng: Random, table: MadeTable, columns: int) -> list[Wanted]:
    """Values to ask for, of some columns."""
    found = []
    for column in rng.sample(table.columns, columns):
        known = column.values if column.recoded is None else column.recoded.labels
        if column.recoded is not None:
            occurring = {column.recoded.label_of[one] for one in column.present}
            known = tuple(one for one in known if one in occurring)
        chosen = rng.sample(known, rng.randint(1, min(3, len(known))))
        found.append(Wanted(column, tuple(chosen)))
    return found


def count_surfaces(
    rng: Random, release: rp.Release, original: rp.Table, wanted: list[Wanted], folder: Path
) -> Iterator[tuple[str, Callable[[], float]]]:
    """Every way to ask for one count: its name, and a call that gives the number."""
    text = " AND ".join(one.condition.ours for one in wanted)
    sql = f"SELECT count(*) FROM release WHERE {text}"
    names = [one.column.name for one in wanted]
    by = next((name for name in release.column_names() if name not in names), names[0])
    quoted = '"' + by.replace('"', '""') + '"'

    def equal() -> dict[str, Any]:
        return {one.column.name: one.given(rng) for one in wanted}

    yield "count(values)", lambda: release.count(**equal()).count
    yield "count(condition)", lambda: release.count(text).count
    ask: Any = release.sql  # its answers are of many types
    yield "sql", lambda: ask(sql).count
    yield "sql FILTER", lambda: ask(
        f"SELECT count(*) FILTER (WHERE {text}) FROM release"
    ).count  # fmt: skip
    yield "sql BY", lambda: sum(
        one.count for _, one in
        ask(f"SELECT {quoted}, count(*) FROM release WHERE {text} GROUP BY ALL")
    )  # fmt: skip
    yield "count_many(values)", lambda: release.count_many([equal(), sql])[0].count
    yield "count_many(sql)", lambda: release.count_many([equal(), sql])[1].count
    compare: Any = release.compare
    yield "compare", lambda: compare(equal(), text, of="count").a.count
    yield "compare(condition)", lambda: compare(equal(), text, of="count").b.count
    yield "crosstab", lambda: sum(one.count for _, one in release.crosstab([by], **equal()))
    yield "crosstab total", lambda: release.crosstab([by], text, totals=True).totals[-1].count.count
    yield "frequencies", lambda: sum(one.count for _, one in release.frequencies(**equal()))
    yield "table.count(values)", lambda: original.count(**equal())
    yield "table.count(condition)", lambda: original.count(text)
    fields = {one.column.name: one.field for one in wanted}
    if all(field is not None for field in fields.values()):
        yield "batch(values)", lambda: _batch(release, folder, list(fields), list(fields.values()))
    yield "batch(sql)", lambda: _batch(release, folder, ["sql"], [sql])


def _batch(release: rp.Release, folder: Path, names: list[str], row: list[Any]) -> float:
    stream = io.StringIO()
    csv.writer(stream).writerows([names, row])
    file = folder / "batch.csv"
    file.write_text(stream.getvalue(), encoding="utf-8", newline="")
    _, selected = read_batch(file, release)
    (answer,) = release.answer_many(selected)
    return float(answer.count)


def true_count(referee: Referee, wanted: list[Wanted]) -> int:
    """The number of records, by the referee."""
    text = " AND ".join(one.condition.theirs for one in wanted)
    return int(referee.one(f"SELECT count(*) FROM raw WHERE {text}"))
