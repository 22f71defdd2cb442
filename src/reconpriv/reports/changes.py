"""What dropping a column, or coarser bins, would do to this table: computed, not guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.column_risk import AuditFigures, WithoutColumn, change_words
from reconpriv.cells.cube import Cube
from reconpriv.messages.numbers import percent
from reconpriv.messages.remedies import plain_words, worded
from reconpriv.policy.policy import Policy
from reconpriv.reports.page import Section, note
from reconpriv.show.document import Field, Grid, Paragraph, figure, number
from reconpriv.tuning.columns import figures_of, wider_bins, with_bins

_TITLE = "What coarser columns would do"


@dataclass(frozen=True)
class Change:
    """Something that could be done to the table, and the resulting figures."""

    name: str
    done_by: str
    figures: AuditFigures

    def helps(self, now: AuditFigures) -> bool:
        """True if fewer records are unique or at risk, without making the other figure worse."""
        unique = now.unique - self.figures.unique
        risk = now.violating_records - self.figures.violating_records
        return min(unique, risk) >= 0 and max(unique, risk) > 0


def wider(cube: Cube, attribute: int, width: int, policy: Policy, *, k: int) -> Change:
    """A column of whole numbers in bins of this width."""
    name = cube.schema.public[attribute].name
    then = figures_of(with_bins(cube, attribute, width), policy, k=k)
    return Change(f"{name} in bins of {width:,}", f"put {name} into bins of {width:,}", then)


def bin_changes(cube: Cube, policy: Policy, *, k: int) -> tuple[Change, ...]:
    """Every column of whole numbers in each of the wider bins."""
    columns = range(len(cube.codes))
    return tuple(wider(cube, i, w, policy, k=k) for i in columns for w in wider_bins(cube, i))


def without(name: str, then: AuditFigures) -> Change:
    """The table without a column."""
    return Change(f"without {name}", f"leave out {name}", then)


def section(audit: AuditReport, bins: Sequence[Change]) -> Section:
    """Every change with its figures, and in words those that make things better or worse."""
    changes = [*bins, *(without(c.name, c.without) for c in audit.columns if c.without)]
    if not changes:
        why = worded(audit.columns_note, plain_words) or "There is no column to make coarser."
        return Section("changes", _TITLE, [Paragraph(why)])
    now = audit.figures
    explained = note(
        "Records are at risk if their group could be reconstructed from a table that is only"
        " perturbed; publishing samples those groups. The expected error is that of the"
        " questions that do not use the column, first with it and then without it"
        f"{audit.margins.aside}."
    )
    error = None if audit.errors is None else audit.errors.alone
    grid = changes_grid(changes, now, audit.single_records.k, error)
    words = [Paragraph(text) for text in advice(changes, now)]
    return Section("changes", _TITLE, [*words, grid, explained])


def advice(changes: Sequence[Change], now: AuditFigures) -> list[str]:
    """What helps; otherwise why coarser is worse, and the best trade-off against unique records."""
    helping = [change for change in changes if change.helps(now)]
    if helping:
        best = min(helping, key=lambda c: (c.figures.unique, c.figures.violating_records))
        return [f"What would help most: {best.done_by}. {_sentence(best, now)}"]
    if not now.unique and not now.violating_records:
        return ["Nothing needs to be made coarser: no record is unique and none is at risk."]
    worst = max(changes, key=lambda c: c.figures.violating_records)
    text = []
    if worst.figures.violating_records > now.violating_records:
        text.append(
            "Coarser columns would put more records at risk, because they make larger groups:"
            f" at worst {worst.figures.violating_records:,} instead of {now.violating_records:,}"
            f" ({worst.name})."
        )
    else:
        text.append("Coarser columns would make no fewer records unique, and put no fewer at risk.")
    best = min(changes, key=lambda c: (c.figures.unique, c.figures.violating_records))
    if best.figures.unique < now.unique:
        text.append(
            "They would make fewer records unique; the fewest remain if you"
            f" {best.done_by}. {_sentence(best, now)}"
        )
    return text


def _sentence(change: Change, now: AuditFigures) -> str:
    words = change_words(now, change.figures)
    return f"{words[:1].upper()}{words[1:]}."


def changes_grid(
    changes: Sequence[Change], now: AuditFigures, k: int, error: float | None = None
) -> Grid:
    """The table as it is and after each change; with the ``error`` of analysts, if it is known."""
    rows = [("as it is", *now.shown, "" if error is None else percent(error))]
    rows += [(one.name, *one.figures.shown, _error(one.figures)) for one in changes]
    counts = map(number, ("groups", "at risk", "unique", f"in groups below {k}"))
    fields = [Field("change"), *counts, figure("expected error")]
    if error is None:
        return Grid(fields[:-1], [row[:-1] for row in rows])
    return Grid(fields, rows)


def _error(figures: AuditFigures) -> str:
    if not isinstance(figures, WithoutColumn) or figures.error is None:
        return ""
    return f"{percent(figures.error_now or 0.0)} → {percent(figures.error)}"
