"""Published records in the types that a frame had; a type grows if the domain is wider.

Every function works on records as Arrow, so no value takes a detour: pandas would turn whole
numbers among missing ones into floating-point numbers, and round them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.columns.schema import Schema, Value

if TYPE_CHECKING:
    import polars

_CATEGORICAL = ("CategoricalDtype", "Enum")  # of pandas, of Polars
_BITS = (8, 16, 32, 64)
_INTEGERS = {f"{sign}{bits}" for sign in ("int", "uint") for bits in _BITS}


def with_categories(kind: Any, domain: Sequence[Value]) -> Any:
    """A categorical type that knows every value of the domain; other types as they are."""
    if type(kind).__name__ not in _CATEGORICAL:
        return kind
    known = list(kind.categories)
    new = [value for value in domain if value is not None and value not in known]
    if not new:
        return kind
    ordered = {"ordered": kind.ordered} if hasattr(kind, "ordered") else {}
    return type(kind)(known + new, **ordered)


def wide_integer(name: str, domain: Sequence[Value]) -> str:
    """The name of an integer type (int8, UInt16, …), or of the next one that holds the domain."""
    numbers = [int(value) for value in domain if value is not None] or [0]
    low, high = min(numbers), max(numbers)
    family, own = name.rstrip("0123456789"), int(name.lstrip("uiUInt"))
    if low < 0:
        family = {"uint": "int", "UInt": "Int"}.get(family, family)
    for bits in _BITS:
        sign = 0 if family in ("uint", "UInt") else 1
        if bits >= own and -sign << bits - 1 <= low and high < 1 << bits - sign:
            return f"{family}{bits}"
    raise OverflowError


# --- Arrow


def arrow_type(kind: pa.DataType, domain: Sequence[Value]) -> pa.DataType:
    """An Arrow type that also holds the domain."""
    if pa.types.is_integer(kind):
        return getattr(pa, wide_integer(str(kind), domain))()
    if pa.types.is_decimal(kind) and kind.scale == 0:
        digits = max((len(str(abs(value))) for value in domain if value is not None), default=0)
        return kind if digits <= kind.precision else pa.decimal128(digits, 0)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, arrow_type(kind.value_type, domain), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return pa.run_end_encoded(kind.run_end_type, arrow_type(kind.value_type, domain))
    return kind


def arrow_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column in this type; Arrow itself cannot cast to all of them."""
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_dictionary(kind):
        encoded = arrow_column(column, kind.value_type).combine_chunks().dictionary_encode()
        index = wide_integer(str(kind.index_type), [len(encoded.dictionary) - 1, 0])
        indices = encoded.indices.cast(getattr(pa, index)())
        return pa.chunked_array(
            [pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)]
        )
    if pa.types.is_run_end_encoded(kind):
        values = arrow_column(column, kind.value_type)
        return pc.run_end_encode(values, run_end_type=kind.run_end_type)
    if kind == pa.uuid():
        texts = column.to_pylist()
        ids = [None if text is None else bytes.fromhex(text.replace("-", "")) for text in texts]
        return pa.chunked_array([pa.array(ids, pa.binary(16)).cast(kind)])
    if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(19, 0))  # as many digits as an integer may have
    return column.cast(kind)


# --- pandas


def pandas_type(kind: Any, domain: Sequence[Value]) -> Any:
    """A pandas type that also holds the domain; nullable if the domain has a missing value."""
    import pandas  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    if isinstance(kind, pandas.CategoricalDtype):
        return with_categories(kind, domain)
    if isinstance(kind, pandas.ArrowDtype):
        return pandas.ArrowDtype(arrow_type(kind.pyarrow_dtype, domain))
    missing = any(value is None for value in domain)
    if kind.name.lower() in _INTEGERS:
        name = wide_integer(kind.name, domain)
        nullable = {"i": "I", "u": "UI"}.get(name[0], name[0]) + name.lstrip("uiUI")
        return pandas.api.types.pandas_dtype(nullable if missing else name)
    return pandas.BooleanDtype() if kind.name == "bool" and missing else kind


def pandas_column(column: pa.ChunkedArray, kind: Any) -> Any:
    """A column in this pandas type."""
    import pandas  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    if isinstance(kind, pandas.CategoricalDtype):
        return _categorical(column, kind)
    if isinstance(kind, pandas.ArrowDtype):
        return pandas.arrays.ArrowExtensionArray(arrow_column(column, kind.pyarrow_dtype))
    if kind.name.lower() in _INTEGERS:
        plain = column.cast(getattr(pa, kind.name.lower())())
        if kind.name in _INTEGERS and not plain.null_count:
            return plain.to_numpy()
        values = plain.fill_null(0).to_numpy().copy()
        whole = pandas.arrays.IntegerArray(values, plain.is_null().to_numpy().copy())
        return whole.astype(kind)  # refused if the type has no missing value
    if kind.name == "object":
        return column.to_pandas(integer_object_nulls=True, timestamp_as_object=True).astype(object)
    return column.to_pandas().astype(kind)


def _categorical(column: pa.ChunkedArray, kind: Any) -> Any:
    """Codes into the categories that the type has; a value that is not among them is lost."""
    import pandas  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    encoded = column.combine_chunks().dictionary_encode()
    values = pa.chunked_array([encoded.dictionary])
    occurring = pandas.Index(pandas_column(values, kind.categories.dtype))
    codes = np.append(kind.categories.get_indexer(occurring), -1)
    indices = encoded.indices.fill_null(len(occurring)).to_numpy()
    return pandas.Categorical.from_codes(codes[indices], dtype=kind)


def as_pandas(records: pa.Table) -> Any:
    """Records as pandas shows them best; whole numbers stay whole even if some are missing."""
    import pandas  # noqa: PLC0415 - not a dependency; whoever asks for it has it

    frame = records.to_pandas()
    for name in records.column_names:
        column = records[name]
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = pandas_column(column, pandas.Int64Dtype())
    return frame


# --- Polars


def as_polars(records: pa.Table) -> polars.DataFrame:
    """Records as a Polars data frame."""
    import polars  # noqa: PLC0415 - not a dependency; whoever asks for it has it

    return polars.DataFrame(polars.from_arrow(records))


def polars_type(kind: Any, domain: Sequence[Value]) -> Any:
    """A Polars type that also holds the domain."""
    import polars  # noqa: PLC0415 - not a dependency; whoever has such a frame has it

    if str(kind).lower() in _INTEGERS:
        return getattr(polars, wide_integer(str(kind), domain))()
    return with_categories(kind, domain)


# --- what a type reveals


def unused_categories(frame: Any, schema: Schema) -> list[str]:
    """A note for each column whose categories reveal values that the release does not hold."""
    if hasattr(frame, "collect_schema"):
        frame = frame.lazy().collect()
        kinds = dict(frame.schema)
    else:  # Arrow builds new dictionaries
        kinds = dict(frame.dtypes) if hasattr(frame, "iloc") else {}
    notes = []
    for name, kind in kinds.items():
        if type(kind).__name__ in _CATEGORICAL:
            known = schema.domain if name == schema.sensitive.name else frame[name].unique()
            if set(kind.categories) - set(known):
                notes.append(
                    f"Column {name!r} comes back with categories that no published record has; they"
                    " are published with the frame. Remove them unless everybody may know them."
                )
    return notes
