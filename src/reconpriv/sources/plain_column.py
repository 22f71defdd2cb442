"""A plain column as codes of a domain, and back: lists, numpy, pandas, Polars and Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconpriv.columns.schema import Column, Kind, Value, choose_domain
from reconpriv.errors import InputError
from reconpriv.sources.frame_types import with_categories
from reconpriv.theory.arrays import Ints
from reconpriv.theory.perturbation import check_domain_size

Codes = NDArray[np.integer[Any]]

# Records at a time: results stay in a core's cache, and are small enough that the allocator reuses
# their memory. Fresh memory costs as much as the work on it.
CHUNK = 1 << 15


def codes_of(values: Any, domain: Sequence[Value]) -> tuple[Codes, tuple[Value, ...], Kind]:
    """Values as indices into the sorted domain; refuses unknown and missing values."""
    array = _arrow(values)
    if array.null_count:
        raise InputError(
            "The column has missing values.",
            hint="Leave them out, or give missing a name in the domain.",
        )
    column = Column("values", _kind(array.type, domain))
    check_domain_size(len(set(domain)))
    sorted_domain = choose_domain(column, {}, list(domain))
    codes = _look_up(array, sorted_domain)
    if codes is None:
        codes = _encode(array, column, domain)
    return codes, sorted_domain, column.kind


def _look_up(array: pa.Array, sorted_domain: Sequence[Value]) -> Codes | None:
    """Texts or integers looked up in the domain, or None if one is not found.

    This takes half the time of finding the distinct values.
    """
    kind = array.type
    looked_up = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    if not any(is_one(kind) for is_one in looked_up):
        return None
    try:
        known = pa.array(sorted_domain, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None  # a domain wider than the column's type
    codes = np.empty(len(array), dtype=np.min_scalar_type(len(sorted_domain) - 1))
    for first in range(0, len(array), CHUNK):
        found = pc.index_in(array.slice(first, CHUNK), value_set=known)
        if found.null_count:
            return None
        codes[first : first + CHUNK] = found.to_numpy()
    return codes


def _encode(array: pa.Array, column: Column, domain: Sequence[Value]) -> Codes:
    """Encode values of any type by their distinct ones; an error names one outside the domain."""
    encoded = pc.dictionary_encode(array)
    distinct = encoded.dictionary.to_pylist()
    sorted_domain = choose_domain(column, dict.fromkeys(distinct, 1), list(domain))
    position = {value: i for i, value in enumerate(sorted_domain)}
    lookup = np.array([position[value] for value in distinct], dtype=np.int64)
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return np.asarray(lookup[indices] if lookup.size else indices, dtype=np.int64)


def count_codes(codes: Codes, domain_size: int) -> Ints:
    """How often each code occurs; in chunks, because numpy copies codes to 64 bits."""
    counts = np.zeros(domain_size, dtype=np.int64)
    for first in range(0, codes.size, CHUNK):
        counts += np.bincount(codes[first : first + CHUNK], minlength=domain_size)
    return counts


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
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        # Decoded by hand: Arrow cannot decode every kind of text that a dictionary may hold.
        return _plain_text(array.dictionary).take(array.indices)
    return _plain_text(array)


def _plain_text(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if pa.types.is_string_view(array.type) else array


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
    if pa.types.is_nested(kind):
        raise InputError("The column holds lists or records, not single values.")
    return Kind.DATE if pa.types.is_date(kind) else Kind.STRING


def column_like(original: Any, codes: Codes, domain: pa.Array) -> Any:
    """The values behind the codes, as the kind of column that came in."""
    if isinstance(original, pa.Array | pa.ChunkedArray):
        values, kind = domain.take(pa.array(codes)), original.type
        if pa.types.is_dictionary(kind):
            values = values.cast(kind.value_type).dictionary_encode()
        values = values.cast(kind)
        return pa.chunked_array([values]) if isinstance(original, pa.ChunkedArray) else values
    if isinstance(original, np.ndarray):
        return _take(_numpy_domain(original.dtype, domain), codes)
    library = type(original).__module__.split(".")[0]
    if library == "pandas" and hasattr(original, "index"):
        # Convert before repeating: a few values, not every record.
        few = type(original)(domain.to_pylist(), dtype=object)
        few = few.astype(with_categories(original.dtype, domain.to_pylist()))
        plain = isinstance(few.dtype, np.dtype)
        many = _take(few.to_numpy(), codes) if plain else few.array.take(codes)
        same = {"index": original.index, "name": original.name, "dtype": few.dtype}
        return type(original)(many, copy=False, **same)
    if library == "polars":
        taken = type(original)(original.name, domain.take(pa.array(codes)))
        return taken.cast(with_categories(original.dtype, domain.to_pylist()))
    return np.asarray(domain.to_pylist(), dtype=object)[codes].tolist()


def _take(values: NDArray[Any], codes: Codes) -> NDArray[Any]:
    """``values[codes]``; in chunks, because numpy copies codes to 64 bits."""
    result = np.empty(codes.size, dtype=values.dtype)
    for first in range(0, codes.size, CHUNK):
        result[first : first + CHUNK] = values[codes[first : first + CHUNK]]
    return result


def _numpy_domain(kind: np.dtype[Any], domain: pa.Array) -> NDArray[Any]:
    """The domain as an array of the given type, widened if a text would not fit."""
    if kind.kind == "O":
        return np.asarray(domain.to_pylist(), dtype=object)
    values = np.asarray(domain.to_pylist())
    return values.astype(np.result_type(kind, values.dtype) if kind.kind in "US" else kind)
