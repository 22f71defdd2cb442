"""Arguments of public functions, compared with their annotations before anything is done.

An annotation says what a function takes; :func:`checked` turns what it does not take into one
sentence. Annotations are texts, so nothing is imported for the comparison: a class that is not
imported is recognised by its name.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from reconpriv.errors import InputError
from reconpriv.messages.phrases import listed

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_PATH = "os.PathLike"


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def is_list(value: Any) -> bool:
    """True if a value can be gone through, value by value; a text can."""
    listed = isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | Mapping)
    # An array of no dimension cannot be gone through, and a table has columns, not values.
    return listed and getattr(value, "ndim", 1) > 0 and not hasattr(value, "columns")


# By the name of a type: what it is in words, and whether a value is of it.
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda value: isinstance(value, Integral) and not _is_flag(value)),
    "float": ("a number", lambda value: isinstance(value, Real) and not _is_flag(value)),
    "bool": ("True or False", _is_flag),
    "str": ("text", lambda value: isinstance(value, str)),
    "bytes": ("bytes", lambda value: isinstance(value, bytes)),
    "None": ("None", lambda value: value is None),
    "Iterable": ("a list", is_list),
    "Sequence": ("a list", lambda value: is_list(value) and isinstance(value, Collection)),
    "Mapping": ("a dictionary", lambda value: isinstance(value, Mapping)),
    "dict": ("a dictionary", lambda value: isinstance(value, Mapping)),
    "Callable": ("a function", callable),
    _PATH: ("a path", lambda value: isinstance(value, os.PathLike)),
}

# A condition that is not text gets advice of its own, where conditions are parsed.
_CHECKED_LATER = ("where",)
_SEQUENCES = ("Iterable", "Sequence")
_SEVERAL = {"str": "texts", "float": "numbers", "Value": "values"}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses arguments that its annotations do not allow."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = _signature(function).bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python says best which argument is missing
        for name, value in list(bound.arguments.items()):
            if name in _CHECKED_LATER:
                continue
            parameter = _signature(function).parameters[name]
            _check(name, value, parameter, function)
            if hasattr(value, "dtype") and "Sequence" in str(parameter.annotation):
                bound.arguments[name] = list(value)  # arrays are compared value by value
        return function(*bound.args, **bound.kwargs)

    return call


def checked_methods(cls: type[T]) -> type[T]:
    """The same class, with all its public methods :func:`checked`."""
    for name, one in list(vars(cls).items()):
        if isinstance(one, FunctionType) and not name.startswith("_"):
            setattr(cls, name, checked(one))
    return cls


def check_path(name: str, path: Any) -> None:
    """Refuse a path that no file can have."""
    if not isinstance(path, str | os.PathLike):
        return
    if path == "":
        raise InputError(f"{name} is an empty path.")
    try:
        if b"\0" in os.fsencode(path):
            raise InputError(f"{name} holds a NUL character, which no path can have.")
    except UnicodeEncodeError:
        raise InputError(f"{name} holds half a character, which no path can have.") from None


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _check(
    name: str, value: Any, parameter: inspect.Parameter, function: Callable[..., Any]
) -> None:
    said = parameter.annotation
    if not isinstance(said, str) or parameter.kind in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ):
        return
    known = getattr(inspect.unwrap(function), "__globals__", {})
    if not _fits(value, said, known):
        shown = "None" if value is None else f"a value of type {type(value).__name__}"
        raise InputError(f"{name} must be {_words(said)}; got {shown}.")
    try:
        if _PATH in said:
            check_path(name, value)
        elif isinstance(value, str):
            value.encode()
        elif isinstance(value, Integral):
            float(value)
    except UnicodeEncodeError:
        raise InputError(f"{name} holds half a character, so it is no text.") from None
    except OverflowError:
        raise InputError(f"{name} is too large a number.") from None


def _fits(value: Any, said: str, known: Mapping[str, Any]) -> bool:
    return any(_fits_one(value, one, known) for one in _split(said, "|"))


def _fits_one(value: Any, said: str, known: Mapping[str, Any]) -> bool:
    name, _, inner = said.partition("[")
    if name in _TYPES:
        if not _TYPES[name][1](value):
            return False
        # What can be read only once is not looked at.
        looked_at = name in _SEQUENCES and isinstance(value, Collection)
        inner = inner.removesuffix("]")
        if inner == "Value":  # one of a column; elsewhere it may be a list of them
            return not looked_at or all(isinstance(one, Hashable) for one in value)
        return not looked_at or all(_fits(one, inner, known) for one in value)
    if name in known:
        found = known[name]
        # An alias or a protocol may be anything; what it needs is checked where it is used.
        judged = isinstance(found, type) and not getattr(found, "_is_protocol", found is Any)
        return not judged or isinstance(value, found)
    return name.rpartition(".")[2] in (one.__name__ for one in type(value).__mro__)


def _words(said: str) -> str:
    """What an annotation allows; a path may be a text, which goes without saying."""
    words = []
    for one in _split(said, "|"):
        name, _, inner = one.removesuffix("]").partition("[")
        of = f" of {_SEVERAL[inner]}" if inner in _SEVERAL and name in _SEQUENCES else ""
        if name != "str" or _PATH not in said:
            words.append(_TYPES[name][0] + of if name in _TYPES else f"a {name}")
    return listed(words, "or")


def _split(said: str, mark: str) -> list[str]:
    """An annotation split at the marks outside its brackets."""
    parts, depth = [""], 0
    for sign in said:
        depth += (sign == "[") - (sign == "]")
        if sign == mark and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]
