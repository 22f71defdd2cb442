"""Guesses from a release alone: without the table, nobody can say which of them are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import Publication
from reconpriv.attacks.result import KNEW, AttackResult, Row, as_rows
from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Schema, json_value
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_cube
from reconpriv.release.margin_file import read_margins
from reconpriv.theory.arrays import Ints

GUESSES_ONLY = (
    "Guesses only, for the groups with the most trials: without the table, nobody can say which of"
    " them are right."
)
Columns = Mapping[str, Iterable[Any]]
# The value guessed for each of some groups, and what is estimated about it.
Guess = Callable[[Publication, Ints], tuple[Ints, Columns]]


def publication_of(release: ReleaseFolder) -> Publication:
    """What an adversary has of a release: its groups, and its margins."""
    manifest = release.manifest
    cube, tables = load_cube(release).whole, read_margins(release)
    return Publication(manifest.policy, cube, tables, manifest.margins.variance)


def guess_groups(
    name: str, published: Publication, guess: Guess, show: int, figures: Row | None = None
) -> AttackResult:
    """The adversary's guesses about the groups with the most trials."""
    cube = published.cube
    order = np.argsort(-cube.trials, kind="stable")[:show]
    guessed, columns = guess(published, order)
    said: Columns = {
        "trials": cube.trials[order],
        "guess": values_of(cube.schema, guessed),
        **columns,
    }
    return AttackResult(
        name=name,
        knew=KNEW,
        table=group_rows(cube, order, said),
        figures={"groups": cube.groups, **(figures or {})},
        verdict=GUESSES_ONLY,
    )


def values_of(schema: Schema, codes: Ints) -> list[Any]:
    """Sensitive values by their place in the domain."""
    return [json_value(schema.domain[code]) for code in codes.tolist()]


def group_rows(cube: Cube, groups: Ints, columns: Columns) -> tuple[Row, ...]:
    """A row for each of some groups: its public values, its records and what else is said."""
    public = cube.group_table().take(groups).to_pylist()
    named = [{name: json_value(value) for name, value in one.items()} for one in public]
    return as_rows({"group": named, "records": cube.records[groups], **columns})
