"""Names of columns, values and files that need quoting, or that no one should use."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from random import Random
from typing import Any

from campaign.case import DONE, NOT_PRIVATE, REFUSED, Case, Generator, Outcome, Step
from campaign.generators.release import EXPORTED
from campaign.generators.tables import rows
from campaign.place import Place

_PIECES = (
    "a", "A", " ", "  ", '"', "'", "`", "\\", ",", ";", ".", "*", "?", "[", "]", "(", ")", "%", "$",
    "#", "--", "/*", "{", "}", "{0}", "\n", "\t", "\x1b", "\x07", "\x7f", "\x85", "é", "ß", "İ",
    "ſ",
    "😀", "\u202e", "\u2028", "\ufeff", "select", "count", "input", "release", "null", "NaN", "1",
    "-1",
    "true", "=", "<b>", "&amp;", "\u0301", "x" * 300, "s_g", "records", "trials",
    "__index_level_0__", "[/x]", "[red]", ":bug:",
)  # fmt: skip


def _name(rng: Random) -> str:
    return "".join(rng.choice(_PIECES) for _ in range(rng.choice((1, 1, 2, 3))))


def _make(rng: Random, place: Place) -> Case:
    first, second, third = _name(rng), _name(rng), _name(rng)
    values = [_name(rng) for _ in range(3)]
    records = [(values[len(one[0]) % 3], one[1], one[3]) for one in rows(rng, 80)]
    file = rng.choice(("table", "table", _name(rng).replace("/", "").replace("\0", "")))[:80]
    form = rng.choice(("csv", "parquet"))
    path = place.vault / os.fsencode(f"t{file}.{form}").decode("utf-8", "surrogateescape")
    if form == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([(first, second, third), *records])
        path.write_bytes(stream.getvalue().encode())
    else:
        import pyarrow as pa  # noqa: PLC0415 - only in processes of their own
        import pyarrow.parquet as pq  # noqa: PLC0415

        arrays = [pa.array(list(column)) for column in zip(*records, strict=True)]
        pq.write_table(pa.Table.from_arrays(arrays, names=[first, second, third]), path)
    # As in SQL, so in a list of columns.
    quoted = '"' + first.replace('"', '""') + '"'
    asked = f"SELECT {quoted}, count(*) FROM release GROUP BY {quoted}"
    shape = rng.choice(("parquet", "csv", "cells"))
    table = (str(path), f"--sensitive={third}", "--public=all")
    made = Step(
        ("publish", *table, "out", "--key", "my.key", "--sampling", "none",
         "--format", shape),
        writes=("out",),
    )  # fmt: skip
    steps = (made, Step(("query", "out", asked, "--json"), codes=(DONE,)))
    last = rng.choice(
        (
            Step(("info", "out"), codes=(DONE,)),
            Step(("audit", *table), codes=(DONE, NOT_PRIVATE)),
            Step(("tune", *table, "--no-pooled", "--retention=0.3,0.5"), codes=(DONE,)),
            Step(("attack", "differencing", *table, "--tolerance=0.9", "--doubt=0.9")),
            Step(("crosstab", "out", "--", quoted, third), codes=(DONE,)),
            Step(("query", "out", asked), codes=(DONE,)),
            Step(
                ("export", "out", f"copy.{rng.choice(('csv', 'sav', 'dta'))}"),
                (DONE, REFUSED),
                EXPORTED,
            ),
            Step(("report", "out", "-o", "r.html"), (DONE,), ("r.html",)),
        )
    )
    counts = dict(Counter(one[0] for one in records))
    return Case(repr((first, second, third)), (*steps, last), {"counts": counts, "name": first})


def _check(case: Case, _: Place, outcomes: list[Outcome]) -> list[str] | None:
    answer: dict[str, Any] = json.loads(outcomes[1].out)
    found = {str(row["labels"][case.facts["name"]]): row["count"] for row in answer["rows"]}
    wanted = {str(value): float(count) for value, count in case.facts["counts"].items()}
    return [] if found == wanted else [f"{found} for {wanted}"]


NAMES = Generator(
    "names",
    "columns, values and files named after SQL, markup, control characters, emoji, single quotes",
    2.0,
    _make,
    check=_check,
)
