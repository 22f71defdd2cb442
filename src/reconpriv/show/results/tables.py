"""Results of a table or two: proposals, a ledger, an installation, a study, a single column."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reconpriv._version import __version__
from reconpriv.messages.numbers import brief, label, percent
from reconpriv.show.document import (
    Document,
    Facts,
    Field,
    Grid,
    Headline,
    Paragraph,
    Whisker,
    figure,
    number,
    rows_grid,
)

if TYPE_CHECKING:
    from reconpriv.doctor import Examination
    from reconpriv.ledger.entries import Entry
    from reconpriv.ledger.ledger import Ledger
    from reconpriv.proposals import Proposals
    from reconpriv.randomised_response import Frequencies, PramMatrix
    from reconpriv.research.run import Study


_ROLES = {"drop": "leave out", "person": "person's number"}


def proposals_document(found: Proposals) -> Document:
    """A row per column, then what to think of it."""
    text = "A proposal, not a decision: leave out whatever else should not be published as it is."
    if found.sensitive is None:
        text += " Name the sensitive column to find those that give its value away."
    rows = [
        (
            one.column,
            one.distinct,
            f"{one.role}, bins {one.bins}" if one.bins else _ROLES.get(one.role, one.role),
            one.reason,
        )
        for one in found.columns
    ]
    fields = [Field("column"), number("values"), Field("proposal"), Field("because")]
    return [Grid(fields, rows), Paragraph(text)]


def ledger_document(ledger: Ledger) -> Document:
    """Every publication in a row, oldest first."""
    name, entries, doubts = ledger.file.path.name, ledger.entries, ledger.doubts
    if not entries and not doubts:
        return [Paragraph(f"{name}: nothing was published with this key yet.")]
    gone = [
        f"Line {one.line} was withdrawn on {one.withdrawn.date[:10]}: {one.withdrawn.why}"
        for one in entries
        if one.withdrawn is not None
    ]
    return [
        Headline(f"Ledger {name}"),
        *([rows_grid("", [_row(entry) for entry in entries])] if entries else []),
        *(Paragraph(text, joined=bool(entries)) for text in [*gone, *doubts]),
    ]


def _row(entry: Entry) -> dict[str, object]:
    policy = entry.policy
    remarks = [
        *(["second sample"] if entry.second_sample else []),
        *(["roles changed"] if entry.role_change else []),
        *([] if entry.finished else ["not finished"]),
        *([] if entry.counted else ["uncounted trials"]),
    ]
    if entry.withdrawn is not None:
        remarks = ["withdrawn"]
    return {
        "line": entry.line,
        "date": f"{entry.date[:10]} {entry.date[11:16]}",
        "series": entry.series,
        "release": entry.release,
        "p": brief(policy["retention"]),
        "tolerance": brief(policy["tolerance"]),
        "doubt": brief(policy["doubt"]),
        "sampling": policy["sampling"],
        "records": entry.records,
        "groups": entry.groups,
        "ρ of margins": "-" if entry.rho is None else f"{entry.rho:.4g}",
        "": ", ".join(remarks),
    }


_PARTS = {
    "python": "Python",
    "machine": "Machine",
    "core": "Core",
    "extra": "Extras",
    "system": "System",
    "data": "Data",
}


def doctor_document(examination: Examination) -> Document:
    """What is installed and what is not, followed by the commands that would add the rest."""
    rows: list[tuple[str, str, str, str]] = []
    part = ""
    for check in examination.checks:
        if check.part != part:
            part = check.part
            rows.append(("", f"\n{_PARTS[part]}", "", ""))
        rows.append(("ok" if check.ok else "-", check.name, check.found, check.use))
    tones = {"ok": "green", "-": "yellow"}

    def tone(row: int, column: int) -> str:
        mark = rows[row][0]
        return {0: tones.get(mark, ""), 1: "" if mark else "bold", 3: "dim"}.get(column, "")

    missing = [check for check in examination.checks if not check.ok and check.add]
    return [
        Headline(f"reconpriv {__version__}"),
        Grid([Field("")] * 4, rows, headed=False, joined=True, tones=tone),
        *([Headline("To add what is missing")] if missing else []),
        *(Paragraph(f"{check.name}: {check.add}", joined=True) for check in missing),
    ]


_COLOURS = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def study_document(study: Study) -> Document:
    """Which of the paper's findings hold."""
    rows = [(one.statement, one.verdict, one.evidence) for one in study.findings]
    fields = [Field("the paper says"), Field("verdict"), Field("measured")]

    def tone(row: int, column: int) -> str:
        return _COLOURS.get(rows[row][1], "") if column == 1 else ""

    done = f"{len(study.files)} files in {study.folder}, {study.seconds:.0f} s; open index.html"
    return [Grid(fields, rows, spaced=True, tones=tone), Paragraph(done, joined=True)]


_SHOWN = 12  # values of a matrix


def frequencies_document(found: Frequencies) -> Document:
    """A row per value with its interval, then what the perturbation costs and promises."""
    top = max(float(found.high.max()), 1e-9)
    numbers = [number(name, ".4f") for name in ("published", "frequency", "standard error")]
    interval = figure(f"{100 * found.confidence:g} % interval")
    rows = [
        (
            label(row["value"]), published, row["frequency"], row["standard_error"],
            f"{row['low']:.4f} to {row['high']:.4f}",
            Whisker(row["low"], row["frequency"], row["high"], top),
        )
        for row, published in zip(found.as_rows(), found.published.tolist(), strict=True)
    ]  # fmt: skip
    fields = [Field("value"), *numbers, interval, Field("", picture=True)]
    return [Grid(fields, rows), _facts(found, ("records", f"{found.records:,}"))]


def matrix_document(matrix: PramMatrix) -> Document:
    """The probabilities, unless they are too many, and what they cost and promise."""
    names = [label(value) for value in matrix.values]
    fields = [Field("published as"), *(number(name, percent) for name in names)]
    rows = [(name, *row) for name, row in zip(names, matrix.probabilities.tolist(), strict=True)]
    table = [Grid(fields, rows)] if len(names) <= _SHOWN else []
    return [*table, _facts(matrix, ("values", f"{len(names):,}"))]


def _facts(said: Frequencies | PramMatrix, first: tuple[str, str]) -> Facts:
    level = said.local_privacy_level
    promise = f"ε = {level:.3g} of local differential privacy for one value"
    return Facts(
        [
            first,
            ("condition number", f"{said.condition_number:,.3g}"),
            ("privacy", "no local privacy level" if math.isinf(level) else promise),
            *(("note", f"{remark}.") for remark in said.remarks),
        ]
    )
