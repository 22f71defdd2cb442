"""The command that tabulates two columns or more: crosstab."""

from __future__ import annotations

from pathlib import Path

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.charting import CHART, OVERWRITE_CHART, check_chart_option, give_answer
from reconpriv.cli.options.declared import argument, option
from reconpriv.errors import PolicyError


def crosstab(
    release: Path = opt.RELEASE,
    rows: str = argument("ROWS", "The column, or columns A,B,…, down the side."),
    columns: str | None = argument("COLUMN", "The column across the top.", None),
    where: str | None = option("--where SQL", "A condition, to tabulate only some records."),
    shares: str | None = option(
        "--shares row|column|all",
        "Shares of the row, the column or the whole table instead of counts.",
    ),
    totals: bool = option("--totals", "Add totals by row, by column and of everything.", False),
    widest: str | None = option(
        "--widest LIMIT",
        "Flag wider intervals: a number of records, or 20% of the estimate; of shares, 5% means"
        " percentage points.",
    ),
    estimator: str = opt.ESTIMATOR,
    confidence: float = opt.CONFIDENCE,
    simultaneous: bool = option(
        "--simultaneous", "Make all intervals hold at once, at that level.", False
    ),
    whole_bins: bool = opt.WHOLE_BINS,
    chart: Path | None = CHART,
    overwrite: bool = OVERWRITE_CHART,
    memory: str | None = opt.MEMORY,
    json: bool = opt.JSON,
) -> None:
    """Tabulate columns of the original table, with intervals: counts or shares, and totals."""
    names = opt.split_names(rows)
    if not names:
        raise PolicyError("ROWS is empty.", hint="Name a column.")
    check_chart_option(chart, overwrite=overwrite)
    opened = opt.open_with_warnings(release, memory)
    found = opened.crosstab(
        names if columns is None else [*names, columns],
        where,
        shares=shares,
        totals=totals,
        widest=widest,
        estimator=estimator,
        confidence=confidence,
        simultaneous=simultaneous,
        whole_bins=whole_bins,
    )
    give_answer(found, chart, overwrite=overwrite, json=json)
