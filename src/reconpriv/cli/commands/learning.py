"""The commands that learn from a release: chi-square and learn."""

from __future__ import annotations

from pathlib import Path

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import argument, option
from reconpriv.cli.process.output import give


def chi_square(
    release: Path = opt.RELEASE,
    columns: str = argument("A,B,…", "Public columns, tested jointly."),
    where: str | None = opt.WHERE,
    margins: bool = opt.MARGINS,
    memory: str | None = opt.MEMORY,
    json: bool = opt.JSON,
) -> None:
    """Test whether the sensitive column depends on public ones, allowing for the randomisation."""
    opened = opt.open_with_warnings(release, memory)
    give(opened.chi_square(opt.split_names(columns), where, margins=margins), json=json)


def learn(
    release: Path = opt.RELEASE,
    target: str | None = option(
        "--target COLUMN", "The column to predict; by default the sensitive one."
    ),
    features: opt.Texts = option(
        "--features A,B,…", "The columns to predict from; by default all others.", repeatable=True
    ),
    test: str | None = option(
        "--test TABLE", "A file of records to predict, with their true values."
    ),
    where: str | None = opt.WHERE,
    alpha: float = option("--alpha", "Laplace smoothing, in records.", 1.0),
    margins: bool = opt.MARGINS,
    memory: str | None = opt.MEMORY,
    json: bool = opt.JSON,
) -> None:
    """Train naive Bayes on reconstructed distributions; --json prints the whole model."""
    from reconpriv.learning.evaluate import learn as run

    chosen = opt.listed_names("--features", features)
    opened = opt.open_with_warnings(release, memory)
    learned = run(opened, target, chosen, where=where, alpha=alpha, test=test, margins=margins)
    give(learned, json=json)
