"""Names that the fields of a policy had before: as arguments still accepted, in files kept.

Everywhere else the fields have their present names. The manifests of releases and the lines of
ledgers keep the old ones, so that any version reads them and a release keeps its bytes.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from reconpriv.errors import PolicyError
from reconpriv.messages.arguments import checked

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

OLD_NAMES = {"epsilon": "tolerance", "delta": "doubt", "sample_size": "sampling"}
OLD_LISTS = {"epsilons": "tolerances", "deltas": "doubts", "sample_sizes": "samplings"}
_STORED = {new: old for old, new in OLD_NAMES.items()}


def stored(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values with the names that files use for the fields of a policy."""
    return {_STORED.get(name, name): value for name, value in plain.items()}


def restored(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values of a file with the present names of the fields of a policy."""
    return {OLD_NAMES.get(name, name): value for name, value in plain.items()}


def renewed(given: Mapping[str, Any], old_names: Mapping[str, str], level: int) -> dict[str, Any]:
    """Keyword arguments with new names for old ones; a warning for each, an error for both.

    ``level`` is how many calls above the caller the warning points at.
    """
    found = dict(given)
    for old in given.keys() & old_names:
        new = old_names[old]
        if new in given:
            raise PolicyError(
                f"{old} is the old name of {new}; got both, {old}={given[old]!r} and"
                f" {new}={given[new]!r}.",
                hint=f"Give {new} alone, in dataclasses.replace too.",
            )
        warnings.warn(_now(old, new), FutureWarning, stacklevel=level + 1)
        found[new] = found.pop(old)
    return found


def _now(old: str, new: str) -> str:
    return f"{old} is now called {new}; the old name is accepted for now."


def takes_old_lists(function: F) -> F:
    """The same function, which also takes lists of values to try by their old names."""
    known = checked(function)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        return known(*args, **renewed(given, OLD_LISTS, 3))

    return call  # type: ignore[return-value]


def by_keyword(cls: type[T]) -> type[T]:
    """A dataclass of keywords: a positional call is explained, old names of fields are accepted."""
    build = cls.__init__
    names = [field.name for field in fields(cls) if field.init]  # type: ignore[arg-type]

    @functools.wraps(build)
    def init(self: T, *args: Any, **given: Any) -> None:
        if args:
            first = zip(names, args, strict=False)
            written = ", ".join(f"{name}={value!r}" for name, value in first)
            raise PolicyError(
                f"A {cls.__name__} takes its fields by keyword; got {len(args)} without a name.",
                hint=f"Write {cls.__name__}({written}{', …' if given else ''}).",
            )
        build(self, **renewed(given, OLD_NAMES, 2))

    cls.__init__ = init  # type: ignore[method-assign, assignment]
    for old, new in OLD_NAMES.items():
        setattr(cls, old, _old_attribute(old, new))
    return cls


def _old_attribute(old: str, new: str) -> property:
    def value(self: object) -> Any:
        warnings.warn(_now(old, new), FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(value, doc=f"The old name of ``{new}``.")
