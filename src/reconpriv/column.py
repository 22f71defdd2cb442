"""A plain column: randomised response at the source, and its reconstruction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.errors import InputError
from reconpriv.randomness import CHUNK, Key, Randomness, as_key, perturb_words, perturbation_purpose
from reconpriv.schema import Column, Kind, Value, parse_value, settle_domain
from reconpriv.theory.perturbation import check_domain_size, check_retention
from reconpriv.theory.reconstruction import count_variance, reconstruct_frequency


@dataclass(frozen=True)
class Frequencies:
    """A reconstructed distribution: F' of every value with its standard error.

    The standard error is that of the perturbation: it concerns the frequencies among these
    records, not among a population they were drawn from.
    """

    values: tuple[Value, ...]
    frequencies: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    records: int

    def as_dict(self) -> dict[Value, float]:
        """Value to frequency."""
        return dict(zip(self.values, self.frequencies.tolist(), strict=True))


def perturb(
    values: Any,
    domain: Sequence[Value],
    *,
    retention: float,
    key: Key | bytes | str | os.PathLike[str] | None = None,
    name: str = "",
) -> Any:
    """Keep each value with probability p, else draw one uniformly from the domain (Eq. 1).

    Returns the same kind of column as it was given (list, numpy, pandas, Polars or Arrow). With a
    key, the same value at the same position is always perturbed the same way; give each column
    its own ``name`` where several share a key, or their noise will be the same.
    """
    check_retention(retention)
    codes, sorted_domain, kind = _codes(values, domain)
    column = Column(name, kind)
    purpose = perturbation_purpose(retention, column, sorted_domain)
    randomness = Randomness(as_key(key), purpose)
    hashes = randomness.hash_values(column, sorted_domain)
    result = np.empty_like(codes)
    for first in range(0, codes.size, CHUNK):
        own = codes[first : first + CHUNK]
        index = np.arange(first, first + own.size, dtype=np.uint64)
        words = randomness.words(hashes[own], index)
        result[first : first + CHUNK] = perturb_words(
            words[:, 0], own, retention=retention, domain_size=len(sorted_domain)
        )
    return _like(values, result, pa.array(sorted_domain))


def reconstruct(perturbed: Any, domain: Sequence[Value], *, retention: float) -> Frequencies:
    """The frequencies before perturbation (Lemma 1), in the order of the domain as given."""
    check_retention(retention)
    codes, sorted_domain, kind = _codes(perturbed, domain)
    if codes.size == 0:
        raise InputError("There are no values to reconstruct from.")
    m = len(sorted_domain)
    observed = np.bincount(codes, minlength=m)
    frequency = reconstruct_frequency(observed, codes.size, retention=retention, domain_size=m)
    variance = count_variance(
        frequency * codes.size, codes.size, retention=retention, domain_size=m
    )
    error = np.sqrt(variance) / codes.size
    position = {value: i for i, value in enumerate(sorted_domain)}
    column = Column("", kind)
    order = [position[parse_value(column, value)] for value in dict.fromkeys(domain)]
    return Frequencies(tuple(dict.fromkeys(domain)), frequency[order], error[order], codes.size)


def _codes(
    values: Any, domain: Sequence[Value]
) -> tuple[NDArray[np.int64], tuple[Value, ...], Kind]:
    """Values as indices into the sorted domain; refuses strangers and missing values."""
    array = _arrow(values)
    encoded = pc.dictionary_encode(array)
    if array.null_count:
        raise InputError(
            "The column has missing values.",
            hint="Leave them out, or give missing a name in the domain.",
        )
    distinct = encoded.dictionary.to_pylist()
    column = Column("values", _kind(encoded.dictionary.type, domain))
    check_domain_size(len(set(domain)))
    sorted_domain = settle_domain(column, dict.fromkeys(distinct, 1), list(domain))
    position = {value: i for i, value in enumerate(sorted_domain)}
    lookup = np.array([position[value] for value in distinct], dtype=np.int64)
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return (
        (lookup[indices] if lookup.size else indices.astype(np.int64)),
        sorted_domain,
        column.kind,
    )


def _arrow(values: Any) -> pa.Array:
    try:
        if hasattr(values, "__arrow_c_stream__"):
            array: Any = pa.chunked_array(values)
        else:
            array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"The values cannot be read as one column ({type(error).__name__}).",
            hint="Give one type of value, as a list, numpy, pandas, Polars or Arrow column.",
        ) from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        # Decoded by hand: Arrow cannot decode every kind of text that a dictionary may hold.
        return _plain_text(array.dictionary).take(array.indices)
    return _plain_text(array)


def _plain_text(array: pa.Array) -> pa.Array:
    views = pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type)
    return array.cast(pa.string()) if views else array


def _kind(kind: pa.DataType, domain: Sequence[Value]) -> Kind:
    if pa.types.is_null(kind):
        kind = pa.array(list(domain)).type
    if pa.types.is_boolean(kind):
        return Kind.BOOLEAN
    if pa.types.is_integer(kind):
        return Kind.INTEGER
    if pa.types.is_floating(kind):
        raise InputError(
            "Floating-point values have no natural finite domain.", hint="Bin them first."
        )
    return Kind.DATE if pa.types.is_date(kind) else Kind.STRING


def _like(original: Any, codes: NDArray[np.int64], domain: pa.Array) -> Any:
    """The values behind the codes as the kind of column that came in."""
    if isinstance(original, pa.Array | pa.ChunkedArray):
        return _arrow_like(original, domain.take(pa.array(codes)))
    if isinstance(original, np.ndarray):
        return _numpy_domain(original.dtype, domain)[codes]
    library = type(original).__module__.split(".")[0]
    if library == "pandas" and hasattr(original, "index"):
        chosen = np.asarray(domain.to_pylist(), dtype=object)[codes]
        same = type(original)(chosen, index=original.index, name=original.name)
        return same.astype(_with_categories(original.dtype, domain.to_pylist()))
    if library == "polars":
        taken = type(original)(original.name, domain.take(pa.array(codes)))
        return taken.cast(_with_categories(original.dtype, domain.to_pylist()))
    return np.asarray(domain.to_pylist(), dtype=object)[codes].tolist()


def _arrow_like(original: pa.Array | pa.ChunkedArray, values: pa.Array) -> Any:
    kind = original.type
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type).dictionary_encode().cast(kind)
    else:
        values = values.cast(kind)
    return pa.chunked_array([values]) if isinstance(original, pa.ChunkedArray) else values


def _numpy_domain(kind: np.dtype[Any], domain: pa.Array) -> NDArray[Any]:
    """The domain as an array of the given type, widened where a text would not fit."""
    if kind.kind == "O":
        return np.asarray(domain.to_pylist(), dtype=object)
    values = np.asarray(domain.to_pylist())
    return values.astype(np.result_type(kind, values.dtype) if kind.kind in "US" else kind)


def _with_categories(kind: Any, domain: list[Value]) -> Any:
    """A categorical type that knows every value of the domain; other types as they are."""
    if type(kind).__name__ not in ("CategoricalDtype", "Enum"):
        return kind
    known = list(kind.categories)
    known += [value for value in domain if value not in known]
    ordered = {"ordered": kind.ordered} if hasattr(kind, "ordered") else {}
    return type(kind)(known, **ordered)
