"""What is learned from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.learning.independence import shown_p
from reconpriv.messages.numbers import label
from reconpriv.show.document import Document, Facts, Field, Grid, Headline, figure, noted, number

if TYPE_CHECKING:
    from reconpriv.learning.evaluate import Learned
    from reconpriv.learning.independence import IndependenceTest


def independence_document(test: IndependenceTest) -> Document:
    """Verdict first, then what both tests rest on, and the tests."""
    from_where = "from records and margins" if test.margins else "for the release"
    corrected = f"corrected{',' if test.margins else ''} {from_where}"
    rows = [
        (corrected, test.statistic, test.degrees_of_freedom, _p(test.p_value)),
        ("naive: published rows as they are", test.naive_statistic,
         test.naive_degrees_of_freedom, _p(test.naive_p_value)),
    ]  # fmt: skip
    numbers = [number(name, ",.2f") for name in ("χ²", "degrees of freedom")]
    fields = [Field("test"), *numbers, figure("p-value")]
    return [
        Headline(test.verdict),
        Facts(
            [
                ("condition", test.condition),
                ("records",
                 f"{test.records:,} in {test.groups:,} groups, {test.trials:,.0f} trials"),
                ("design effect", _design_effect(test)),
            ]
        ),
        Grid(fields, rows, note=noted(test.remarks), joined=True),
    ]  # fmt: skip


def _p(value: float) -> str:
    return shown_p(value).removeprefix("p ").removeprefix("= ")


def _design_effect(test: IndependenceTest) -> str:
    """How much more shares vary than if every record were perturbed and none sampled."""
    effect = f"{test.design_effect:.2f}"
    if test.margins and test.design_effect < 1.0:
        # Not a number of records: it would be larger than the table.
        many = f"all {test.records:,} records would be if only perturbed"
        return f"{effect}: thanks to the margins, more precise than {many}"
    alone = test.records / max(test.design_effect, 1.0)
    return f"{effect}: as precise as {alone:,.0f} records that are only perturbed, not sampled"


def learned_document(learned: Learned) -> Document:
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
    prior = [(label(one), share) for one, share in zip(learned.classes, learned.prior, strict=True)]
    fields = [Field(learned.target), number("probability", ".4f")]
    return [Facts(rows), Grid(fields, prior, "Prior")]
