"""What an attack showed."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    number,
    rows_grid,
)

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult

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
