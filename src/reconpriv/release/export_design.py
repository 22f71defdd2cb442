"""Published records with what a count needs to know: group, trials and design weight."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Column, ColumnLabels, Kind, Value
from reconpriv.errors import OutputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.release.manifest import Manifest

DesignNames = tuple[str, str, str, str]

PLAIN = Remedy("write the records alone", Control.PLAIN, True)


# What a script can compare with. Numbers with fractions, and moments, differ in their last digits.
_COMPARABLE = (Kind.STRING, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE)
_LARGEST = 2**31
_AWKWARD = '\\"`$'  # some program takes them for more than letters
_LONGEST = 80


@dataclass(frozen=True)
class CheckAnswer:
    """An answer of the release: how many records have a public value, a sensitive one, or both.

    ``among`` is a public column with its value, ``holding`` a sensitive value; None is any.
    """

    among: tuple[Column, Value] | None
    holding: Value | None
    count: float
    standard_error: float


def comparable(column: Column, value: Value) -> bool:
    """True if every program can be asked for this value, and reads it as we do."""
    if value is None or column.kind not in _COMPARABLE:
        return False
    if isinstance(value, str):
        awkward = any(c in _AWKWARD or unicodedata.category(c).startswith("C") for c in value)
        return value.strip() == value != "" and len(value) <= _LONGEST and not awkward
    return isinstance(value, bool) or not isinstance(value, int) or abs(value) < _LARGEST


@dataclass(frozen=True)
class DesignedRecords:
    """Records with the columns of the design, and what all columns are labelled.

    ``names`` are those of the group, its records, the independent trials that they rest on, and
    records per trial.
    """

    table: pa.Table
    labels: dict[str, ColumnLabels]
    names: DesignNames


def check_design(manifest: Manifest, *, trials_known: bool) -> None:
    """Refuse a release whose trials are secret."""
    if not trials_known:
        raise OutputError(
            f"A release of sampling rule {manifest.policy.sampling!r} keeps its trials secret, so"
            " a file cannot carry them.",
            hint=PLAIN,
        )


def designed_records(cube: Cube, manifest: Manifest, label_bytes: int | None) -> DesignedRecords:
    """Every record with its group; a protection group, if there are any.

    ``label_bytes`` is the longest label that the file can hold.
    """
    schema = manifest.schema
    whole, within = cube.whole, cube.within
    names = design_names([column.name for column in schema.columns])
    rows = np.repeat(np.arange(cube.count.size), cube.count)
    micro = cube.group[rows]
    group = within[micro]
    trials = whole.trials.astype(np.int64)
    columns = {
        column.name: values.take(pa.array(codes[micro]))
        for column, codes, values in zip(schema.public, cube.codes, cube.values, strict=True)
    }
    domain = pa.array(list(schema.domain))
    columns[schema.sensitive.name] = domain.take(pa.array(cube.value[rows]))
    design = (group + 1, whole.records[group], trials[group], whole.scale[group])
    columns |= {name: pa.array(some) for name, some in zip(names, design, strict=True)}
    pooled = whole is not cube
    what = "Protection group" if pooled else "Group"
    titles = (
        f"{what}, randomised as one",
        "Records in the group",
        "Independent trials that the records of the group rest on",
        "Design weight: records per trial",
    )
    labels = dict(manifest.labels) | dict(zip(names, map(ColumnLabels, titles), strict=True))
    sensitive = schema.sensitive.name
    said = labels.get(sensitive, ColumnLabels())
    labels[sensitive] = replace(
        said, title=corrected_title(said.title or sensitive, manifest, label_bytes)
    )
    return DesignedRecords(pa.table(columns), labels, names)


def corrected_title(title: str, manifest: Manifest, label_bytes: int | None) -> str:
    """What the sensitive column is called, and how its published counts are to be corrected.

    The title is cut if there is no place for both.
    """
    p, m = manifest.policy.retention, manifest.schema.domain_size
    note = f" (randomised: estimate = (n - N*(1-{p!r})/{m})/{p!r})"
    if label_bytes is not None:
        title = title.encode()[: label_bytes - len(note)].decode(errors="ignore").rstrip()
    return title + note


def design_names(columns: list[str]) -> DesignNames:
    """Names that begin alike, and like no column: group, records, trials and weight."""
    prefix, number = "rp_", 1
    while any(name.lower().startswith(prefix) for name in columns):
        number += 1
        prefix = f"rp{number}_"
    return f"{prefix}group", f"{prefix}records", f"{prefix}trials", f"{prefix}weight"
