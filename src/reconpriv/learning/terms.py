"""The columns of a regression: numbers as they are, categories as indicators of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.comparisons import unknown_column, unknown_value
from reconpriv.columns.kinds import NUMBERS
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Floats, Ints

INTERCEPT = "Intercept"
_COLLINEAR = 1e-9  # what is left of a column when those before it are taken out, squared
_AS_CATEGORY = re.compile(r"C\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Feature:
    """A public column of a model, as a number or as a category."""

    column: str
    numeric: bool
    text: str = ""


@dataclass(frozen=True)
class ModelTerm:
    """One coefficient's column of the model: a number, a value of a category, or neither."""

    column: str | None
    value: Value = None
    category: bool = False

    @property
    def name(self) -> str:
        """What the coefficient is called."""
        if self.column is None:
            return INTERCEPT
        return f"{self.column}[{shown(self.value)}]" if self.category else self.column


@dataclass(frozen=True)
class Encoding:
    """A category with its values and the one that the others are compared with.

    For a number, ``values`` is empty, and mean and spread make its column well-conditioned.
    """

    feature: Feature
    values: tuple[Value, ...] = ()
    reference: int = 0
    mean: float = 0.0
    spread: float = 1.0

    @property
    def others(self) -> list[int]:
        """The values that have an indicator."""
        return [i for i in range(len(self.values)) if i != self.reference]


@dataclass(frozen=True)
class Encodings:
    """All public columns of a model, after the intercept."""

    parts: tuple[Encoding, ...]

    @property
    def terms(self) -> tuple[ModelTerm, ...]:
        """The columns of the design matrix."""
        found = [ModelTerm(None)]
        for part in self.parts:
            name = part.feature.column
            if part.feature.numeric:
                found.append(ModelTerm(name))
            found += [ModelTerm(name, part.values[i], category=True) for i in part.others]
        return tuple(found)

    def matrix(self, columns: Sequence[Floats | Ints]) -> Floats:
        """The design matrix of rows, given numbers or the codes of ``values`` column by column.

        A code of -1, a value not seen before, is like the reference.
        """
        found: list[Floats] = [np.ones(columns[0].size if len(columns) else 1)]
        for part, column in zip(self.parts, columns, strict=True):
            if part.feature.numeric:
                found.append(np.asarray((column - part.mean) / part.spread, dtype=np.float64))
            found += [(column == i).astype(np.float64) for i in part.others]
        return np.stack(found, axis=1)

    def scales(self) -> Floats:
        """The spread of every column: that of a number, 1 for an indicator."""
        spread = {part.feature.column: part.spread for part in self.parts}
        return np.array([1.0 if t.column is None else spread[t.column] for t in self.terms])

    def levels(self) -> tuple[list[tuple[str, Value]], Floats]:
        """Every value of every category, and the combination of columns that is its indicator."""
        terms = self.terms
        names: list[tuple[str, Value]] = []
        found: list[Floats] = []
        for part in self.parts:
            own = [i for i, term in enumerate(terms) if term.category
                   and term.column == part.feature.column]  # fmt: skip
            if not own:
                continue
            for place in own:
                names.append((part.feature.column, terms[place].value))
                found.append(np.eye(len(terms))[place])
            names.append((part.feature.column, part.values[part.reference]))
            found.append(np.eye(len(terms))[0] - np.eye(len(terms))[own].sum(axis=0))
        return names, np.array(found).reshape(-1, len(terms))

    def restoring(self) -> Floats:
        """The matrix from coefficients of standardised numbers to those of the numbers."""
        terms = self.terms
        back = np.eye(len(terms))
        for part in self.parts:
            if part.feature.numeric:
                place = terms.index(ModelTerm(part.feature.column))
                back[place, place] = 1.0 / part.spread
                back[0, place] = -part.mean / part.spread
        return back


def read_features(features: Sequence[str] | str, answerer: Answerer) -> list[Feature]:
    """Public columns by name; ``C(name)`` takes the values of a number as categories."""
    wanted = [features] if isinstance(features, str) else list(features)
    if not wanted:
        raise InputError("There is no feature to learn from.", hint="Name at least one column.")
    kinds = {column.name: column.kind for column in answerer.cells.schema.columns}
    found: list[Feature] = []
    for text in wanted:
        name, category = text, False
        if name not in kinds and (inner := _AS_CATEGORY.fullmatch(str(text))):
            name, category = inner.group(1).strip(), True
        if name not in kinds:
            raise unknown_column(name, list(kinds))
        if any(name == one.column for one in found):
            raise InputError(f"Column {name!r} is named twice among the features.")
        found.append(Feature(name, kinds[name] in NUMBERS and not category, str(text)))
    return found


def encode_features(
    features: Sequence[Feature],
    codes: Sequence[Ints],
    known: Mapping[str, Sequence[Value]],
    records: Floats,
    reference: Mapping[str, Value],
) -> tuple[Encodings, list[Floats | Ints]]:
    """How the features of rows are encoded, and their columns; a useless one is refused.

    The reference of a category is its most frequent value, unless another is asked for.
    """
    parts: list[Encoding] = []
    columns: list[Floats | Ints] = []
    for feature, code in zip(features, codes, strict=True):
        name, values = feature.column, known[feature.column]
        occurring, place = np.unique(code, return_inverse=True)
        if occurring.size == 1:
            raise InputError(
                f"Column {name!r} has the value {shown(values[int(occurring[0])])} in all selected"
                " records, so it explains nothing.",
                hint="Leave it out.",
            )
        if feature.numeric:
            numbers = as_numbers(name, values, occurring)[place]
            mean = float(np.average(numbers, weights=records))
            spread = float(np.sqrt(np.average((numbers - mean) ** 2, weights=records)))
            parts.append(Encoding(feature, mean=mean, spread=spread))
            columns.append(numbers)
            continue
        kept = tuple(values[int(i)] for i in occurring)
        first = int(np.bincount(place, weights=records).argmax())
        if name in reference:
            first = position_of(name, reference[name], kept)
        parts.append(Encoding(feature, kept, first))
        columns.append(place)
    return Encodings(tuple(parts)), columns


def as_numbers(name: str, values: Sequence[Value], codes: Ints) -> Floats:
    """The numbers that codes stand for; a missing one is refused."""
    found = [values[int(code)] for code in codes]
    if any(value is None or value != value for value in found):  # noqa: PLR0124 - NaN
        raise InputError(
            f"Column {name!r} has missing values, which are no numbers.",
            hint=f"Leave those records out by a condition, or take it as categories: C({name}).",
        )
    numbers = np.array([float(value) for value in found])
    if not np.isfinite(numbers).all():
        raise InputError(f"Column {name!r} holds infinite numbers.")
    return numbers


def position_of(name: str, value: Value, values: Sequence[Value]) -> int:
    """The position of a value that must occur; text stands for a number of the same spelling."""
    for i, one in enumerate(values):
        if one == value or (isinstance(value, str) and one is not None and str(one) == value):
            return i
    raise unknown_value(name, value, list(values))


def check_collinear(x: Floats, terms: Sequence[ModelTerm], records: Floats) -> None:
    """Refuse a column that is a combination of those before it."""
    if x.shape[0] < x.shape[1]:
        raise InputError(
            f"The model has {x.shape[1]:,} columns, but the records differ in {x.shape[0]:,} ways"
            " only, so it cannot be told apart from others.",
            hint="Leave features out.",
        )
    weighted = x * np.sqrt(records)[:, None]
    weighted /= np.linalg.norm(weighted, axis=0)
    # Products of columns depend on each other as the columns do, and there are fewer of them.
    left = np.abs(np.diag(np.linalg.qr(weighted.T @ weighted, mode="r")))
    gone = np.flatnonzero(left <= _COLLINEAR)
    if gone.size:
        raise InputError(
            f"The predictors are collinear: {terms[int(gone[0])].name} follows from those before"
            " it.",
            hint="Leave one of them out.",
        )


def shown(value: Any) -> str:
    """A value for display."""
    return "missing" if value is None else str(value)
