"""A single column: reconstructed frequencies, or a matrix of probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reconpriv.messages.numbers import label, percent
from reconpriv.show.document import Document, Facts, Field, Grid, Whisker, figure, number

if TYPE_CHECKING:
    from reconpriv.randomised_response import Frequencies, PramMatrix

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
