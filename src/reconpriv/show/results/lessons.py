"""What an adversary and what an analyst learns: attacks, tests, classifiers and regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.messages.numbers import label
from reconpriv.show.charts import palette
from reconpriv.show.document import (
    Document,
    Facts,
    Field,
    Grid,
    Headline,
    OnPage,
    Whisker,
    any_figure,
    figure,
    noted,
    number,
    rows_grid,
)

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult
    from reconpriv.learning.evaluate import Learned
    from reconpriv.learning.independence import IndependenceTest
    from reconpriv.learning.regression import Coefficient, Regression


RATES = ("success", "baseline", "control")


def attack_document(result: AttackResult, *, closed: bool = True) -> Document:
    """The verdict, the rates side by side on one scale, figures, a table and the worst groups.

    On a page, the tables are ``closed``.
    """
    rates = [(name, rate) for name in RATES if (rate := getattr(result, name)) is not None]
    pictures = [
        (name, rate.share, Whisker(rate.low, rate.share, rate.high, 1.0, colour), rate.what)
        for name, rate in rates
        if rate.trials
        for colour in [palette.VERMILION if name == "success" else palette.BLUE]
    ]
    fields = [Field("rate"), number("share", ".1%"), Field("", picture=True), Field("of")]
    return [
        Headline(result.verdict),
        *([OnPage([Grid(fields, pictures, headed=False)])] if pictures else []),
        Facts(
            [
                ("attack", result.name),
                ("adversary knew", result.knew),
                *((name, f"{rate}: {rate.what}") for name, rate in rates),
                *((name, any_figure(value)) for name, value in result.figures.items()),
            ]
        ),
        *([rows_grid("Figures", result.table, closed=closed)] if result.table else []),
        *([rows_grid("Worst groups (internal: not for release)", result.worst, closed=closed)]
          if result.worst else []),
    ]  # fmt: skip


def independence_document(test: IndependenceTest) -> Document:
    """Verdict first, then what both tests rest on, and the tests."""
    corrected = {True: "corrected, from records and margins", False: "corrected for the release"}
    rows = [
        (corrected[test.margins], test.statistic, test.degrees_of_freedom, _p(test.p_value)),
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
    from reconpriv.learning.independence import shown_p  # noqa: PLC0415 - an attack needs none of it

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


_BOTH = {True: "records and margins", False: ""}  # if margins were used


def learned_document(learned: Learned) -> Document:
    """A classifier: what it learned from, how well it does, and its classes."""
    rows = [
        ("target", f"{learned.target} ({len(learned.classes)} classes)"),
        ("features", ", ".join(learned.features)),
        ("reconstructed", learned.sensitive or "nothing: no randomised column takes part"),
        ("learned from", _BOTH[learned.margins]),
    ]
    if learned.accuracy is not None:
        rows += [
            ("tested on", f"{learned.tested:,} records"),
            ("accuracy", f"{learned.accuracy:.4f} (most frequent class: {learned.baseline:.4f})"),
            ("log-loss", f"{learned.log_loss:.4f}"),
        ]
    prior = [(label(one), share) for one, share in zip(learned.classes, learned.prior, strict=True)]
    fields = [Field(learned.target), number("probability", ".4f")]
    return [Facts(rows), Grid(fields, prior, "Prior")]


def regression_document(found: Regression) -> Document:
    """What was fitted, what it rests on, and its coefficients."""
    compared = ", ".join(f"{name} = {label(value)}" for name, value in found.reference.items())
    facts = [
        ("condition", found.condition),
        ("records", f"{found.records:,} in {found.groups:,} groups, {found.trials:,.0f} trials"),
        ("fitted to", _BOTH[found.margins]),
        ("reference", compared),
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
