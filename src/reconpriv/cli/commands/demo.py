"""The demonstration: a real table audited, published and queried next to the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.cells.randomness import Key
from reconpriv.errors import OutputError
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.messages.redaction import shown_path
from reconpriv.policy.presets import RECOMMENDED
from reconpriv.reading import read
from reconpriv.release.release import Release
from reconpriv.show.document import Document, Field, Grid, Heading, Paragraph, figure, number
from reconpriv.show.results.audit import audit_document
from reconpriv.show.results.release import release_document
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
        asked = [table.truth.select(None, query) for query in _QUERIES]
        truths = [round(one.count) for one in table.truth.count_many(asked, Settings())]
    return Demo(report, release, tuple(zip(estimates, truths, strict=True)), out is not None)


def demo_document(demo: Demo) -> Document:
    """The demonstration step by step."""
    rows = [
        (answer.query, answer.count, "exact" if answer.exact else
         f"{answer.low:,.0f} to {answer.high:,.0f}", truth)
        for answer, truth in demo.answers
    ]  # fmt: skip
    fields = [Field("count of"), number("estimate", ",.0f"), figure("95 % interval"),
              number("truth")]  # fmt: skip
    removed = "(a temporary folder, removed by now; --out DIR keeps it)"
    return [
        Heading("1. Audit: 48,842 real people; would perturbing their occupation be enough?"),
        *audit_document(demo.audit),
        Heading("2. Publish: large groups rest on fewer independent trials"),
        *release_document(demo.release),
        *([] if demo.kept else [Paragraph(removed)]),
        Heading("3. Query the release, next to the truth that only the publisher knows"),
        Grid(fields, rows, note="The last query rests on one micro group, about which a release is"
             " meant to reveal little."),
        Heading("4. Next, try"),
        Paragraph(
            "reconpriv keygen my.key\n"
            "reconpriv publish example:adult release/ -s occupation --public age,sex,race"
            " --missing value --key my.key\n"
            "reconpriv info release/\n"
            'reconpriv query release/ "SELECT sex, count(*) FROM release WHERE occupation ='
            " 'Sales' GROUP BY sex\"\n"
            "reconpriv columns YOUR_TABLE.parquet -s YOUR_SENSITIVE_COLUMN"
        ),
    ]  # fmt: skip
