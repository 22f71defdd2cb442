"""Published records with what a count needs to know: group, trials and design weight."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from reconpriv.core.cube import Cube
from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.errors import OutputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.release.manifest import Manifest
from reconpriv.release.scripts.base import DesignNames
from reconpriv.schema import ColumnLabels

PLAIN = Remedy("write the records alone", Control.PLAIN, True)


@dataclass(frozen=True)
class DesignedRecords:
    """Records with the columns of the design, and what all columns are labelled."""

    table: pa.Table
    labels: dict[str, ColumnLabels]
    names: DesignNames


def check_design(manifest: Manifest, *, trials_known: bool) -> None:
    """Refuse a release whose trials are secret."""
    if not trials_known:
        raise OutputError(
            f"A release of sample size {manifest.policy.sample_size!r} keeps its trials secret, so"
            " a file cannot carry them.",
            hint=PLAIN,
        )


def designed_records(cube: Cube, manifest: Manifest, label_bytes: int | None) -> DesignedRecords:
    """Every record with its group; a protection group, if there are any.

    ``label_bytes`` is the longest label that the file can hold.
    """
    schema = manifest.schema
    whole, within = cube, np.arange(cube.groups)
    if isinstance(cube, ProtectedCube):
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
    columns |= {name: pa.array(some) for name, some in zip(names.all, design, strict=True)}
    pooled = isinstance(cube, ProtectedCube)
    labels = dict(manifest.labels) | {
        names.group: ColumnLabels(
            "Protection group, randomised as one" if pooled else "Group, randomised as one"
        ),
        names.records: ColumnLabels("Records in the group"),
        names.trials: ColumnLabels("Independent trials that the records of the group rest on"),
        names.weight: ColumnLabels("Design weight: records per trial"),
    }
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
    """Names that begin like no column."""
    prefix, number = "rp_", 1
    while any(name.lower().startswith(prefix) for name in columns):
        number += 1
        prefix = f"rp{number}_"
    return DesignNames(prefix)
