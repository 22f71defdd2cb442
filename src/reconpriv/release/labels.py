"""Labels of columns and values: from the source into the manifest, and out of it again.

A label says what a code of the questionnaire means; it is the publisher's own text and says nothing
about a person. So labels of values that nobody has may be published. What the manifest adds to them
are values that are published anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import (
    Column,
    ColumnLabels,
    Kind,
    Schema,
    Value,
    json_value,
    parse_value,
)
from reconpriv.errors import InputError
from reconpriv.protect.kernel import Draw

_MOST_CATEGORIES = 1000
_CATEGORICAL = (Kind.STRING, Kind.INTEGER)


def labels_of(schema: Schema, labels: Mapping[str, ColumnLabels]) -> dict[str, ColumnLabels]:
    """The labels of the columns that are published, their values in the column's own type."""
    found = {}
    for column in schema.columns:
        said = labels.get(column.name)
        if said is not None:
            # What a code means says nothing about a bin or a group of codes.
            known = () if schema.recoding(column.name) else said.values
            values = tuple((v, text) for v, text in known if _fits(column, v))
            found[column.name] = ColumnLabels(said.title, values)
    return found


def _fits(column: Column, value: Value) -> bool:
    if column.kind not in (*_CATEGORICAL, Kind.NUMBER):
        return False
    try:
        return bool(parse_value(column, value) == value)
    except InputError:
        return False


@dataclass
class LabelledValues:
    """Notes the published values of labelled public columns as batches pass."""

    schema: Schema
    labels: Mapping[str, ColumnLabels]
    seen: dict[str, set[Value]] = field(default_factory=dict)

    def see(self, batch: CellBatch, draw: Draw | None = None) -> None:  # noqa: ARG002
        """Note the values of a batch that is published."""
        for column, coded in zip(self.schema.public, batch.public, strict=True):
            if column.name in self.labels:
                values = self.seen.setdefault(column.name, set())
                if len(values) <= _MOST_CATEGORIES:
                    used = coded.values.take(np.unique(coded.codes)).to_pylist()
                    values.update(value for value in used if value is not None)

    def join(self, part: LabelledValues) -> None:
        """Add what another machine has seen."""
        for name, values in part.seen.items():
            self.seen.setdefault(name, set()).update(values)

    def small(self) -> LabelledValues:
        """What one machine sends to another: all of it."""
        return self

    @property
    def published(self) -> dict[str, ColumnLabels]:
        """The labels of all columns as the manifest has them."""
        known = {value for value in self.schema.domain if value is not None}
        found = {}
        for column in self.schema.columns:
            said, values = self.labels.get(column.name), self.seen.get(column.name, set())
            if said is not None and column == self.schema.sensitive:
                named = tuple((value, text) for value, text in said.values if value in known)
                said, values = ColumnLabels(said.title, named), known
            if said is not None:
                found[column.name] = as_published(column, said, values)
        return {name: said for name, said in found.items() if said != ColumnLabels()}


def as_published(column: Column, said: ColumnLabels, values: Set[Value]) -> ColumnLabels:
    """Labels as the categories of a field, or as its description if it can have none.

    Categories must hold every value of the column, so ``values`` that have no label join them.
    """
    names = dict(said.values)
    others = sorted(values - names.keys())
    if not names:
        return ColumnLabels(said.title)
    if column.kind in _CATEGORICAL and len(names) + len(others) <= _MOST_CATEGORIES:
        return ColumnLabels(said.title, tuple(sorted(names.items())), others=tuple(others))
    words = "; ".join(f"{value} = {names[value]}" for value in sorted(names))
    return ColumnLabels(said.title, description=words)


def describe_field(described: dict[str, Any], said: ColumnLabels | None) -> dict[str, Any]:
    """A field of a Table Schema with its published labels."""
    if said is None:
        return described
    if said.title:
        described["title"] = said.title
    if said.values:
        names = dict(said.values)
        described["categories"] = [
            {"value": json_value(value)} | ({"label": names[value]} if value in names else {})
            for value in sorted([*names, *said.others])
        ]
    if said.description:
        described["description"] = said.description
    return described


def read_labels(field: Mapping[str, Any], column: Column) -> ColumnLabels | None:
    """The labels that a field of a manifest carries; a ValueError if it is malformed."""
    title, categories = field.get("title", ""), field.get("categories", [])
    if not isinstance(title, str) or not isinstance(field.get("description", ""), str):
        raise ValueError
    if not isinstance(categories, list):
        raise ValueError
    values, others = [], []
    for category in categories:
        if isinstance(category, dict) and "label" in category:
            if not isinstance(category["label"], str):
                raise ValueError
            values.append((parse_value(column, category["value"]), category["label"]))
        else:
            value = category["value"] if isinstance(category, dict) else category
            others.append(parse_value(column, value))
    # Categories without any label, such as a domain, are not labels.
    unnamed = tuple(others) if values else ()
    said = ColumnLabels(title, tuple(values), field.get("description", ""), unnamed)
    return None if said == ColumnLabels() else said


def labels_as_dict(said: ColumnLabels) -> dict[str, Any]:
    """The labels of a column, for JSON."""
    shown: dict[str, Any] = {"title": said.title} if said.title else {}
    if said.values:
        shown["values"] = [{"value": json_value(v), "label": text} for v, text in said.values]
    return shown | ({"description": said.description} if said.description else {})
