"""A regression, in the order of columns that statsmodels prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.messages.numbers import label
from reconpriv.show.document import Document, Facts, Field, Grid, Headline, noted, number

if TYPE_CHECKING:
    from reconpriv.learning.regression import Coefficient, Regression


def regression_document(found: Regression) -> Document:
    """What was fitted, what it rests on, and its coefficients."""
    compared = ", ".join(f"{name} = {label(value)}" for name, value in found.reference.items())
    facts = [
        ("condition", found.condition),
        ("records", f"{found.records:,} in {found.groups:,} groups, {found.trials:,.0f} trials"),
        *([("fitted to", "records and margins")] if found.margins else []),
        *([("reference", compared)] if compared else []),
    ]
    blocks: dict[object, list[Coefficient]] = {}
    for one in found.coefficients:
        blocks.setdefault(one.outcome, []).append(one)
    tail = (1.0 - found.confidence) / 2.0
    fields = [
        Field(""),
        *(number(name, ".4f") for name in ("coef", "std err")),
        *(number(name, ".3f") for name in ("z", "P>|z|")),
        *(number(name, ".4f") for name in (f"[{tail:.4g}", f"{1.0 - tail:.4g}]")),
    ]
    return [
        Headline(found.title),
        Facts(facts),
        *(
            Grid(
                fields,
                [_row(one) for one in rows],
                f"{found.outcome} = {label(outcome)}" if found.kind == "multinomial" else "",
                noted(found.remarks) if place == len(blocks) else "",
            )
            for place, (outcome, rows) in enumerate(blocks.items(), 1)
        ),
    ]


def _row(one: Coefficient) -> tuple[object, ...]:
    both = one.statistic is not None and one.p_value is not None
    tested = (one.statistic, one.p_value) if both else ("", "")
    return (one.term, one.estimate, one.standard_error, *tested, one.low, one.high)
