"""What counts as exposed: the values of a group that a policy protects from reconstruction.

By default every value that occurs is tested, as in the paper. A policy may test only values that
more than a share φ of the group hold, and leave out values that nobody minds (harmless).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reconpriv.columns.schema import Schema, Value, parse_value
from reconpriv.errors import PolicyError
from reconpriv.messages.phrases import listed
from reconpriv.messages.shares import check_share
from reconpriv.theory.arrays import Flags, Floats, Ints

if TYPE_CHECKING:
    from reconpriv.cells.cell_batch import CellBatch
    from reconpriv.policy.policy import Policy

# On the command line a missing value has no text of its own.
MISSING = "NULL"
_RAREST = 2.0**-63


def check_exposed_above(share: float) -> float:
    """Return φ if 0 <= φ < 1."""
    return check_share(
        share,
        "The share above which a value counts as exposed",
        zero=True,
        hint="0 tests every value, as in the paper; 0.25 only values of more than a quarter.",
    )


def harmless_flags(wanted: tuple[Value, ...], schema: Schema) -> tuple[bool, ...]:
    """Which values of the domain a policy calls harmless."""
    found = {_in_domain(value, schema) for value in wanted}
    if len(found) == schema.domain_size:
        raise PolicyError(
            "Every value of the sensitive column is called harmless: there is nothing to protect.",
            hint="Leave out the values that somebody might mind.",
        )
    return tuple(value in found for value in schema.domain)


def _in_domain(value: Value, schema: Schema) -> Value:
    domain = schema.domain
    # Only text can have a value that is written like a missing one.
    missing = value is None or (value == MISSING and MISSING not in domain)
    parsed = None if missing else parse_value(schema.sensitive, value)
    if parsed in domain:
        return parsed
    some = [repr(one) for one in domain[:5]]
    more = ", …" if len(domain) > len(some) else ""
    raise PolicyError(
        f"Column {schema.sensitive.name!r} has no value {value!r} that could be harmless.",
        hint=f"Its values are {', '.join(some)}{more}." if more else f"Name {listed(some, 'or')}.",
    )


def exposed_cells(batch: CellBatch, policy: Policy) -> Flags:
    """The cells that a policy tests."""
    frequency = batch.count / batch.sizes[batch.group_of_cell]
    return exposed_values(frequency, batch.value, policy)


def exposed_values(frequency: Floats, value: Ints, policy: Policy) -> Flags:
    """Which values of the domain a policy tests where they are as frequent as this in a group."""
    # A quotient is correctly rounded, so 29 of 100 is not "more than 0.29".
    exposed = frequency > policy.exposed_above
    if policy.harmless:
        exposed &= ~np.array(policy.harmless_flags)[value]
    return np.asarray(exposed)


def largest_exposed(batch: CellBatch, policy: Policy) -> Floats:
    """The largest frequency of an exposed value in each group; 0 if it has none."""
    counts = np.where(exposed_cells(batch, policy), batch.count, 0)
    return np.asarray(np.maximum.reduceat(counts, batch.starts) / batch.sizes)


def most_exposed(batch: CellBatch, policy: Policy) -> Ints:
    """The index of each group's most frequent exposed value, or, without one, of any value.

    In a tie, the first in the domain.
    """
    # Exposed values come first, whatever the counts of the others.
    first = np.where(exposed_cells(batch, policy), batch.count.max(initial=0), 0)
    counts = batch.count + first
    largest = np.maximum.reduceat(counts, batch.starts)
    group = batch.group_of_cell
    candidates = np.flatnonzero(counts == largest[group])
    return batch.value[candidates[np.searchsorted(group[candidates], np.arange(batch.groups))]]


def frequency_of(batch: CellBatch, values: Ints) -> Floats:
    """How frequent the value given for each group is in it."""
    count = np.where(batch.value == values[batch.group_of_cell], batch.count, 0)
    return np.asarray(np.add.reduceat(count, batch.starts) / batch.sizes)


def exposed_borders(exposed_above: float) -> Floats:
    """φ, 2φ, 4φ, … and 1: the borders of classes of the largest exposed frequency.

    Powers of two for φ = 0, down to what no frequency falls below.
    """
    least = exposed_above or _RAREST
    doublings = np.arange(int(np.ceil(-np.log2(least))) + 1)
    borders = np.ldexp(least, doublings)
    return np.append(borders[borders < 1.0], 1.0)
