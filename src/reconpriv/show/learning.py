"""What is learned from a release, as text and as HTML for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.show.notebook import headed_tables
from reconpriv.show.text import pairs_table

if TYPE_CHECKING:
    from reconpriv.learning.evaluate import Learned
    from reconpriv.learning.independence import IndependenceTest


def independence_view(test: IndependenceTest) -> RenderableType:
    """Verdict first, then both tests and what they rest on."""
    return Group(Text(f"{test.verdict}\n", style="bold"), *_test_tables(test))


def independence_html(test: IndependenceTest) -> str:
    """The test for a notebook."""
    return headed_tables(test.verdict, "inherit", _test_tables(test))


def _test_tables(test: IndependenceTest) -> list[RichTable]:
    from reconpriv.learning.independence import shown_p  # noqa: PLC0415 - loaded by now

    table = RichTable(
        box=None,
        padding=(0, 2, 0, 0),
        caption="\n".join(f"note: {remark}." for remark in test.remarks) or None,
        caption_justify="left",
    )
    for heading in ("test", "χ²", "degrees of freedom", "p-value"):
        table.add_column(heading, justify="left" if heading == "test" else "right")
    corrected = (test.statistic, test.degrees_of_freedom, test.p_value)
    naive = (test.naive_statistic, test.naive_degrees_of_freedom, test.naive_p_value)
    for name, (statistic, degrees, p_value) in (
        (
            "corrected, from records and margins" if test.margins else "corrected for the release",
            corrected,
        ),
        ("naive: published rows as they are", naive),
    ):
        shown = shown_p(p_value).removeprefix("p ").removeprefix("= ")
        table.add_row(name, f"{statistic:,.2f}", f"{degrees:,.2f}", shown)
    facts = [
        ("condition", test.condition),
        ("records", f"{test.records:,} in {test.groups:,} groups, {test.trials:,.0f} trials"),
        ("design effect", _design_effect(test)),
    ]
    return [pairs_table(facts), table]


def _design_effect(test: IndependenceTest) -> str:
    """How much more shares vary than if every record were perturbed and none sampled."""
    effect = f"{test.design_effect:.2f}"
    if test.margins and test.design_effect < 1.0:
        # Not a number of records: it would be larger than the table.
        many = f"all {test.records:,} records would be if only perturbed"
        return f"{effect}: thanks to the margins, more precise than {many}"
    alone = test.records / max(test.design_effect, 1.0)
    return f"{effect}: as precise as {alone:,.0f} records that are only perturbed, not sampled"


def learned_view(learned: Learned) -> RenderableType:
    """A classifier: what it learned from, how well it does, and its classes."""
    rows = [
        ("target", f"{learned.target} ({len(learned.classes)} classes)"),
        ("features", ", ".join(learned.features)),
        ("reconstructed", learned.sensitive or "nothing: no randomised column takes part"),
    ]
    if learned.margins:
        rows.append(("learned from", "records and margins"))
    if learned.accuracy is not None:
        rows += [
            ("tested on", f"{learned.tested:,} records"),
            ("accuracy", f"{learned.accuracy:.4f} (most frequent class: {learned.baseline:.4f})"),
            ("log-loss", f"{learned.log_loss:.4f}"),
        ]
    table = RichTable(title="\nPrior", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column(Text(learned.target))
    table.add_column("probability", justify="right")
    for value, share in zip(learned.classes, learned.prior, strict=True):
        table.add_row(Text("(missing)" if value is None else str(value)), f"{share:.4f}")
    return Group(pairs_table(rows), table)
