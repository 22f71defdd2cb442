"""Several rows per person: a vote over them finds what one randomised row hides.

The adversary knows which published rows are about the same person. That holds where the public
values of each row are known and no other row has them; such a row is a trial by itself, whatever
the sampling rule. So every row is published as one trial here, and nothing else: no other records,
no margins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reconpriv.attacks.attacked_table import AttackedTable, first_cells, guessed_right, uniforms
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import rate
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.cells.cube import Cube, collect
from reconpriv.columns.schema import Column, Kind
from reconpriv.engines.base import Progress, no_progress
from reconpriv.errors import InputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.policy.policy import Policy
from reconpriv.protect.group_by import GroupBy
from reconpriv.theory.arrays import Flags, Ints
from reconpriv.theory.perturbation import local_privacy_level
from reconpriv.theory.votes import vote_success

if TYPE_CHECKING:
    from reconpriv.table import Table

KNEW = (
    "which published rows are about the same person, how frequent each value is in the table,"
    " the policy; not the key"
)
# People with more rows than this are counted together.
MANY_ROWS = 10


def peoples_rows(
    table: Table, policy: Policy, heard: Progress = no_progress
) -> tuple[AttackedTable, int]:
    """A table whose groups are people, and how many rows do not say whose they are.

    Every row is one person's if one was kept of each.
    """
    checks, person = table.checks, table.schema.person
    if person is None:
        raise InputError(
            "The attack 'persons' must know who a row is about.",
            hint=Remedy("name that column", Control.PERSON),
        )
    plain = table.fitted(replace(policy, sampling="none", margins=None, protect=None))
    if checks.one_row_each:
        schema = replace(table.schema, public=(Column(person.name, Kind.INTEGER),))
        batch = _one_each(collect(table.batches(progress=heard), table.schema))
        return AttackedTable(schema, plain, batch, progress=heard), 0
    schema = checks.by_person
    batches = checks.engine.batches(GroupBy(schema, checks.drop_missing), heard)
    cube = collect(batches, schema)
    batch = cube.as_batch()
    known = cube.values[0].is_valid().to_numpy(zero_copy_only=False)[cube.codes[0]]
    if not known.any():
        raise InputError(f"Column {person.name!r} is empty: nobody can tell whose a row is.")
    own = batch.take(np.flatnonzero(known))
    return AttackedTable(schema, plain, own, progress=heard), int(batch.sizes[~known].sum())


def _one_each(cube: Cube) -> CellBatch:
    """Every record as a person of its own."""
    value = np.repeat(cube.value, cube.count)
    numbers = np.arange(value.size)
    person = Encoded(numbers.astype(np.int32), pa.array(numbers))
    return CellBatch((person,), numbers, value, np.ones_like(numbers))


def attack_persons(
    table: Table, policy: Policy, *, keys: int = 1, progress: Progress = no_progress
) -> AttackResult:
    """Guess each person's most frequent value from one published row, and from all of them."""
    target, unknown = peoples_rows(table, policy, progress)
    sizes = target.batch.sizes
    several = sizes > 1
    exposed = several if several.any() else np.ones_like(several)
    one, vote = _guessed(target, target, keys)
    control = _guessed(target, target.shuffled(), keys)[1]
    common = np.full(sizes.size, int(target.overall.argmax()))
    alone = rate(one[:, exposed], "the same from one row of each")
    who = "people with several rows" if several.any() else "people"
    success = rate(vote[:, exposed], f"{who} whose most frequent value a vote over all rows finds")
    said = "Each person has one row, so there is nothing to vote over: that row tells the value of"
    said += f" {alone.share:.1%} of the people."
    if several.any():
        said = f"A vote over all rows of one person finds the value of {success.share:.1%} of the"
        said += f" {int(several.sum()):,} people with several rows; one row of each finds that of"
        said += f" {alone.share:.1%}."
    return AttackResult(
        name="persons",
        knew=KNEW,
        success=success,
        baseline=rate(
            guessed_right(target, common)[exposed],
            f"{who} with the most frequent value of the table",
        ),
        control=rate(control[:, exposed], "the vote over rows that were dealt to people by lot"),
        figures={
            "people": int(sizes.size),
            "people with several rows": int(several.sum()),
            "rows of one person, at most": int(sizes.max()),
            "one row of each": alone,
            "published": "each row as one trial; sampling, margins and protection are left aside",
            **({"rows of nobody, left out": unknown} if unknown else {}),
        },
        table=_by_rows(target, one, vote),
        verdict=said,
    )


def _guessed(target: AttackedTable, published: AttackedTable, keys: int) -> tuple[Flags, Flags]:
    """Who is guessed right from one row and from the vote, a line per key."""
    one, vote = [], []
    for number in target.steps("key", range(keys)):
        cube = published.publish(number)
        one.append(guessed_right(target, best_guess(_one_row(cube, number), target)))
        vote.append(guessed_right(target, best_guess(cube, target)))
    return np.array(one), np.array(vote)


def best_guess(published: Cube, target: AttackedTable) -> Ints:
    """The most probable value of each person whose rows all hold the same one.

    A row that shows a value makes it r/t times as probable, so votes are weighed against how
    frequent the value is in the whole table, which a release tells. Without any vote, that decides.
    """
    m = target.schema.domain_size
    with np.errstate(divide="ignore"):
        prior = np.log(target.overall)
    common = int(prior.argmax())
    each = local_privacy_level(target.policy.retention, m)
    score = prior[published.value] + each * published.count
    first = first_cells(published, -score)
    return np.where(score[first] >= prior[common], published.value[first], common)


def _one_row(published: Cube, number: int) -> Cube:
    """One published row of each person, each equally likely: the first of a race."""
    u = uniforms(published.count.size, f"one row {number}")
    chosen = first_cells(published, -np.log1p(-u) / published.count)
    ones = np.ones(published.groups, dtype=np.int64)
    return replace(
        published,
        records=ones,
        trials=ones.astype(np.float64),
        group=np.arange(published.groups),
        value=published.value[chosen],
        count=ones,
    )


def _by_rows(target: AttackedTable, one: Flags, vote: Flags) -> tuple[Row, ...]:
    """The figures by number of rows, the people best guessed first."""
    kind = np.minimum(target.batch.sizes, MANY_ROWS + 1)
    constant = target.batch.cells_per_group == 1
    p, m = target.policy.retention, target.schema.domain_size
    rows = []
    for n in np.unique(kind).tolist():
        some, few = kind == n, n <= MANY_ROWS
        rows.append(
            {
                "rows": n if few else f"over {MANY_ROWS}",
                "people": np.count_nonzero(some),
                "same value in all": constant[some].mean(),
                "one row": one[:, some].mean(),
                "vote": vote[:, some].mean(),
                "predicted for the same value": vote_success(n, p, m) if few else None,
            }
        )
    return tuple(sorted(rows, key=lambda row: -row["vote"]))
