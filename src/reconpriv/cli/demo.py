"""The demonstration: a real table audited, published and queried next to the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.core.audit_report import AuditReport
from reconpriv.core.cube import collect
from reconpriv.core.randomness import Key
from reconpriv.errors import OutputError
from reconpriv.messages.redaction import shown_path
from reconpriv.presets import RECOMMENDED
from reconpriv.queries.answer import Answerer
from reconpriv.queries.estimate import Design, Estimate
from reconpriv.reading import read
from reconpriv.release.release import Release
from reconpriv.show.audit import audit_view
from reconpriv.show.release import release_view
from reconpriv.table import Table
from reconpriv.writing.scratch import temporary

PUBLIC = ("age", "sex", "race")
SENSITIVE = "occupation"

_QUERIES: tuple[dict[str, Any], ...] = (
    {"sex": "Female"},
    {"sex": "Female", "occupation": "Sales"},
    {"race": "Black", "occupation": "Other-service"},
    {"sex": "Female", "race": "White", "occupation": "Adm-clerical"},
    {"occupation": ["Exec-managerial", "Prof-specialty"]},
    {"age": 23, "sex": "Female", "race": "White", "occupation": "Adm-clerical"},
)


@dataclass(frozen=True)
class Demo:
    """What the demonstration showed."""

    audit: AuditReport
    release: Release
    answers: tuple[tuple[Estimate, int], ...]
    kept: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "audit": self.audit.as_dict(),
            "publish": self.release.as_dict(),
            "queries": [{**answer.as_dict(), "truth": truth} for answer, truth in self.answers],
        }


def run_demo(out: Path | None) -> Demo:
    """Audit and publish the bundled Adult table and answer a few count queries."""
    policy = RECOMMENDED.policy
    if out is not None and out.exists():
        raise OutputError(
            f"{shown_path(out)} exists already.", hint="Choose another name for the release."
        )
    with (
        read("example:adult", sensitive=SENSITIVE, public=PUBLIC, missing="value") as table,
        temporary("demo") as scratch,
    ):
        report = table.audit(policy, worst=3)
        release = table.publish(policy, out or scratch / "release", key=Key.test())
        estimates = release.count_many(list(_QUERIES))
        truths = _truths(table)
    return Demo(report, release, tuple(zip(estimates, truths, strict=True)), out is not None)


def _truths(table: Table) -> list[int]:
    """The same queries on the raw cells."""
    cube = collect(table.batches(), table.schema)
    raw = Answerer(cube, Design(1.0, table.schema.domain_size, "none"))
    truths = []
    for query in _QUERIES:
        selected = raw.select(None, query)
        cells = raw.mask(selected, cube)[cube.group]
        if selected.values is not None:
            cells &= np.isin(cube.value, selected.values)
        truths.append(int(cube.count[cells].sum()))
    return truths


def demo_view(demo: Demo) -> RenderableType:
    """The demonstration step by step."""
    return Group(
        _step(1, "Audit: 48,842 real people; would perturbing their occupation be enough?"),
        audit_view(demo.audit),
        _step(2, "Publish: large groups rest on fewer independent trials"),
        release_view(demo.release),
        Text("" if demo.kept else "(a temporary folder, removed by now; --out DIR keeps it)"),
        _step(3, "Query the release, next to the truth that only the publisher knows"),
        _answers(demo),
        _step(4, "Next, try"),
        Text(
            "reconpriv keygen my.key\n"
            "reconpriv publish example:adult release/ -s occupation --public age,sex,race"
            " --missing value --key my.key\n"
            "reconpriv info release/\n"
            'reconpriv query release/ "SELECT sex, count(*) FROM release WHERE occupation ='
            " 'Sales' GROUP BY sex\"\n"
            "reconpriv columns YOUR_TABLE.parquet -s YOUR_SENSITIVE_COLUMN"
        ),
    )


def _step(number: int, title: str) -> Text:
    return Text(f"\n{number}. {title}\n", style="bold cyan")


def _answers(demo: Demo) -> RichTable:
    table = RichTable(
        box=None,
        padding=(0, 2, 0, 0),
        caption="The last query rests on one micro group, about which a release is meant to"
        " reveal little.",
        caption_justify="left",
    )
    table.add_column("count of", overflow="fold")
    for heading in ("estimate", "95 % interval", "truth"):
        table.add_column(heading, justify="right")
    for answer, truth in demo.answers:
        interval = "exact" if answer.exact else f"{answer.low:,.0f} to {answer.high:,.0f}"
        table.add_row(Text(answer.query), f"{answer.count:,.0f}", interval, f"{truth:,}")
    return table
