"""The demonstration: a real table audited, published and queried next to the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconpriv.cells.randomness import Key
from reconpriv.cli.process.output import Printed
from reconpriv.errors import OutputError
from reconpriv.estimate.counts import Settings
from reconpriv.messages.redaction import shown_path
from reconpriv.policy.presets import RECOMMENDED
from reconpriv.reading import read
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


def demonstrated(out: Path | None) -> Printed:
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
    answers = list(zip(estimates, truths, strict=True))
    rows = [
        (
            one.query,
            one.count,
            "exact" if one.exact else f"{one.low:,.0f} to {one.high:,.0f}",
            truth,
        )
        for one, truth in answers
    ]
    fields = [Field("count of"), number("estimate", ",.0f"), figure("95 % interval"),
              number("truth")]  # fmt: skip
    removed = "(a temporary folder, removed by now; --out DIR keeps it)"
    steps: Document = [
        Heading("1. Audit: 48,842 real people; would perturbing their occupation be enough?"),
        *audit_document(report),
        Heading("2. Publish: large groups rest on fewer independent trials"),
        *release_document(release),
        *([] if out is not None else [Paragraph(removed)]),
        Heading("3. Query the release, next to the truth that only the publisher knows"),
        Grid(fields, rows, note="The last query is about a single group, of which a release is"
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
    found = {
        "audit": report.as_dict(),
        "publish": release.as_dict(),
        "queries": [{**answer.as_dict(), "truth": truth} for answer, truth in answers],
    }
    return Printed(found, lambda: steps)
