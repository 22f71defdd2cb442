"""A plain column: randomised response at the source, and its reconstruction."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from reconpriv.answers.figure import impossible
from reconpriv.cells.randomness import (
    Key,
    Randomness,
    Words,
    as_key,
    draw_words,
    perturb_words,
    purpose,
)
from reconpriv.columns.schema import Column, Kind, Value, json_value, parse_value
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import check_confidence, quantile
from reconpriv.messages.arguments import checked
from reconpriv.messages.readable import Readable
from reconpriv.sources.plain_column import CHUNK, codes_of, column_like, count_codes
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.intervals import Pooled, count_limits
from reconpriv.theory.estimation.reconstruction import count_variance, reconstruct_frequency
from reconpriv.theory.estimation.transition import (
    check_transition,
    condition_number,
    covariances,
    frequency_limits,
    keep_or_draw,
    made_invariant,
    transition_privacy_level,
    undo,
    variances,
)
from reconpriv.theory.perturbation import (
    check_domain_size,
    check_retention,
    local_privacy_level,
    perturbation_matrix,
    replacement_probability,
)

FROM_DATA = (
    "the matrix was made from the data: whoever has it can compute the exact frequencies of the"
    " column from it"
)
UNBOUNDED = (
    "no local privacy level: the matrix has zeros, so that a published value can rule out a true"
    " one"
)


@dataclass(frozen=True, eq=False, repr=False)
class PramMatrix(Readable):
    """A matrix for post-randomisation (PRAM): row i is the distribution of what i becomes.

    ``from_data`` says that it was computed from the column that it is for.
    """

    values: tuple[Value, ...]
    probabilities: Floats
    from_data: bool = False

    @cached_property
    def condition_number(self) -> float:
        """How much the reconstruction may magnify noise; 1 is best."""
        return condition_number(self.probabilities)

    @cached_property
    def local_privacy_level(self) -> float:
        """The ε of local differential privacy that one published value provides; may be inf."""
        return transition_privacy_level(self.probabilities)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before it is used or passed on."""
        unbounded = (UNBOUNDED,) if math.isinf(self.local_privacy_level) else ()
        return (*unbounded, *((FROM_DATA,) if self.from_data else ()))

    @checked
    def ordered(self, values: Sequence[Value]) -> PramMatrix:
        """The same matrix for the values in another order."""
        if tuple(values) == self.values:
            return self
        if set(values) != set(self.values):
            raise PolicyError("The matrix is for other values than those of the domain.")
        position = {value: i for i, value in enumerate(self.values)}
        order = [position[value] for value in values]
        return PramMatrix(tuple(values), self.probabilities[np.ix_(order, order)], self.from_data)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name; an infinite privacy level is None, as JSON has no infinity."""
        level = self.local_privacy_level
        return {
            "values": [json_value(value) for value in self.values],
            "matrix": self.probabilities.tolist(),
            "condition_number": self.condition_number,
            "local_dp_epsilon": None if math.isinf(level) else level,
            "from_data": self.from_data,
            "remarks": list(self.remarks),
        }


def described(matrix: Any, values: tuple[Value, ...]) -> PramMatrix:
    """A matrix that has been checked, for the values in this order."""
    size = check_domain_size(len(values))
    if hasattr(matrix, "loc") and hasattr(matrix, "columns"):
        matrix = _by_label(matrix, list(values))
    return PramMatrix(values, check_transition(matrix, size))


def _by_label(frame: Any, values: list[Value]) -> Any:
    """A data frame in the order of the values; without labels, as it is."""
    labels = list(frame.index), list(frame.columns)
    if all(set(some) == set(values) for some in labels):
        return frame.loc[values, values]
    if any(some != list(range(len(values))) for some in labels):
        raise PolicyError(
            "The rows and columns of the matrix are labelled with other values than the domain's."
        )
    return frame


Matrix = PramMatrix | ArrayLike

_ROUNDING = 1e-12  # of a frequency that is 0 or 1


@dataclass(frozen=True, eq=False, repr=False)
class Frequencies(Readable):
    """A reconstructed distribution: F' of every value with its standard error and interval.

    Standard errors and intervals are those of the perturbation: they concern the frequencies among
    these records, not among a population they were drawn from. ``published`` are the shares as
    they were perturbed, and ``perturbation`` is the retention or the matrix that did it.
    """

    values: tuple[Value, ...]
    frequencies: Floats
    standard_errors: Floats
    records: int
    confidence: float
    published: Floats
    perturbation: float | PramMatrix
    condition_number: float
    local_privacy_level: float
    remarks: tuple[str, ...] = ()

    @property
    def low(self) -> Floats:
        """The lower limits of the intervals."""
        return self._limits[0]

    @property
    def high(self) -> Floats:
        """The upper limits of the intervals."""
        return self._limits[1]

    @cached_property
    def _limits(self) -> tuple[Floats, Floats]:
        # Searched for only if somebody looks: it takes longer than everything else together.
        n, given = self.records, self.perturbation
        if isinstance(given, PramMatrix):
            z = quantile(self.confidence)
            return frequency_limits(given.probabilities, self.frequencies, n, quantile=z)
        low, high = _count_limits(np.rint(self.published * n), given, 1.0 - self.confidence)
        return low / n, high / n

    @cached_property
    def covariance(self) -> Floats:
        """The estimated covariance of the frequencies, for sums and differences of them."""
        given = self.perturbation
        matrix = (
            given.probabilities
            if isinstance(given, PramMatrix)
            else perturbation_matrix(given, len(self.values))
        )
        return covariances(matrix, self.frequencies, self.records)

    def as_dict(self) -> dict[Value, float]:
        """Value to frequency."""
        return dict(zip(self.values, self.frequencies.tolist(), strict=True))

    def as_rows(self) -> list[dict[str, Any]]:
        """One dictionary per value, with the names of its columns as keys."""
        columns = {
            "value": [json_value(value) for value in self.values],
            "frequency": self.frequencies.tolist(),
            "standard_error": self.standard_errors.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


@checked
def perturb(
    values: Any,
    domain: Sequence[Value],
    *,
    retention: float | None = None,
    matrix: Matrix | None = None,
    key: Key | bytes | str | os.PathLike[str] | None = None,
    name: str = "",
) -> Any:
    """Keep each value with probability p, else draw one uniformly from the domain (Eq. 1).

    With a ``matrix`` instead of a ``retention``, each value is drawn from its row: entry [i, j] is
    the probability that value i of the domain, as given, is published as value j
    (post-randomisation, PRAM).

    Returns the same kind of column as it is given (list, numpy, pandas, Polars or Arrow). With a
    key, the same value at the same position is always perturbed the same way; give each column its
    own ``name`` if several share a key, or their noise will be the same.
    """
    given = _given(retention, matrix, domain)
    codes, sorted_domain, kind = codes_of(values, domain)
    column = Column(name, kind)
    draw: Callable[[Words, Ints], Ints]
    if isinstance(given, PramMatrix):
        order = np.argsort(_order(given.values, sorted_domain, kind))
        rows = given.probabilities[np.ix_(order, order)]
        digest = hashlib.blake2b(rows.astype("<f8").tobytes(), digest_size=32).digest()
        bound_to = purpose(0.0, column, sorted_domain, b"matrix" + digest)
        draw = partial(draw_words, matrix=rows)
    else:
        bound_to = purpose(given, column, sorted_domain)
        draw = partial(perturb_words, retention=given, domain_size=len(sorted_domain))
    randomness = Randomness(as_key(key), bound_to)
    hashes = randomness.hash_values(column, sorted_domain)
    result = np.empty_like(codes)
    for first in range(0, codes.size, CHUNK):
        own = codes[first : first + CHUNK].astype(np.int64)
        index = np.arange(first, first + own.size, dtype=np.uint64)
        result[first : first + CHUNK] = draw(randomness.words(hashes[own], index)[:, 0], own)
    return column_like(values, result, pa.array(sorted_domain))


@checked
def reconstruct(
    perturbed: Any,
    domain: Sequence[Value],
    *,
    retention: float | None = None,
    matrix: Matrix | None = None,
    confidence: float = 0.95,
) -> Frequencies:
    """The frequencies before perturbation (Lemma 1), in the order of the domain as given.

    Give the ``retention`` or the ``matrix`` that the values were perturbed with.
    """
    given = _given(retention, matrix, domain)
    check_confidence(confidence)
    codes, sorted_domain, kind = codes_of(perturbed, domain)
    if codes.size == 0:
        raise InputError("There are no values to reconstruct from.")
    named = tuple(dict.fromkeys(domain))
    observed = count_codes(codes, len(sorted_domain))[_order(named, sorted_domain, kind)]
    n, m = int(observed.sum()), observed.size
    if isinstance(given, PramMatrix):
        frequency = undo(given.probabilities, observed / n)
        errors = np.sqrt(variances(given.probabilities, frequency, n))
        condition, level = given.condition_number, given.local_privacy_level
    else:
        frequency = reconstruct_frequency(observed, n, retention=given, domain_size=m)
        errors = np.sqrt(count_variance(frequency * n, n, retention=given, domain_size=m)) / n
        # pI + tJ has the extreme eigenvalues 1 and p.
        condition, level = 1.0 / given, local_privacy_level(given, m)
    marks = dict.fromkeys(mark for one in frequency for mark in impossible(one, 0.0, 1.0))
    return Frequencies(
        values=named,
        frequencies=frequency,
        standard_errors=errors,
        records=n,
        confidence=confidence,
        published=observed / n,
        perturbation=given,
        condition_number=condition,
        local_privacy_level=level,
        remarks=(
            *(given.remarks if isinstance(given, PramMatrix) else ()),
            *(f"of some values, {mark}" for mark in marks),
        ),
    )


def _count_limits(observed: Floats, p: float, miss: float) -> tuple[Floats, Floats]:
    """The limits of the counts before perturbation: one group in which every record is a trial."""
    m = observed.size
    every, none = np.full(m, observed.sum()), np.zeros(m)
    pooled = Pooled(
        observed=observed,
        records=every,
        scaled_records=every,
        scaled_squares=every,
        holder_scale=np.ones(m),
        unsampled=every,
        uneven=none,
        rounded=none,
    )
    return count_limits(pooled, retention=p, stray=replacement_probability(p, m), miss=miss)


@checked
def pram_matrix(matrix: Matrix, domain: Sequence[Value]) -> PramMatrix:
    """Check a matrix for a column: its condition number and what it promises for one record.

    Entry [i, j] is the probability that value i of the domain is published as value j. A data frame
    whose rows and columns are labelled with the domain may have them in any order.
    """
    named = tuple(dict.fromkeys(domain))
    return matrix.ordered(named) if isinstance(matrix, PramMatrix) else described(matrix, named)


@checked
def invariant_matrix(
    values: Any,
    domain: Sequence[Value],
    *,
    retention: float | None = None,
    matrix: Matrix | None = None,
) -> PramMatrix:
    """A matrix that leaves the frequencies of this column unchanged on average.

    With a ``retention`` p it keeps a value with probability p and else draws one from the column
    itself. A ``matrix`` of one's own is made invariant by a second draw that leads back.

    It is a function of the data: whoever has the matrix can compute the exact frequencies of the
    column from it. Keep it secret, or publish it only if those frequencies may be known.
    """
    given = _given(retention, matrix, domain)
    codes, sorted_domain, kind = codes_of(values, domain)
    if codes.size == 0:
        raise InputError("There are no values to take frequencies from.")
    named = tuple(dict.fromkeys(domain))
    order = _order(named, sorted_domain, kind)
    frequencies = count_codes(codes, len(sorted_domain))[order] / codes.size
    if isinstance(given, PramMatrix):
        found = made_invariant(given.probabilities, frequencies)
    else:
        found = keep_or_draw(frequencies, given)
    return replace(described(found, named), from_data=True)


def _given(
    retention: float | None, matrix: Matrix | None, domain: Sequence[Value]
) -> float | PramMatrix:
    """The retention or the matrix, whichever it is, checked."""
    if retention is not None and matrix is None:
        return check_retention(retention)
    if retention is None and matrix is not None:
        return pram_matrix(matrix, domain)
    raise PolicyError("Give either a retention or a matrix.")


def _order(named: Sequence[Value], sorted_domain: Sequence[Value], kind: Kind) -> list[int]:
    """Where each value of the domain as given is in the sorted domain."""
    position = {value: i for i, value in enumerate(sorted_domain)}
    column = Column("", kind)
    return [position[parse_value(column, value)] for value in named]
