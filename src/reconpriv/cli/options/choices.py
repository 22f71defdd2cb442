"""What help and completion say about the registries, which are queried only when needed.

``{bounds}`` in a text lists the names of the bounds there; ``{bounds|}`` and ``{bounds,}`` use
other separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from reconpriv.messages.phrases import listed

_PLACE = re.compile(r"\{([a-z ]+)([|,]?)\}")


# Where the names of each kind are, and what makes a list of them; nothing is imported before.
_PLACES: dict[str, tuple[str, Callable[[Any], list[str]]]] = {
    "attacks": ("attacks.run.ATTACKS", list),
    "attacks on releases": ("attacks.run.on_releases", lambda found: found()),
    "bounds": ("theory.tails.bounds.BOUNDS", list),
    "classifiers": ("learning.classifiers.CLASSIFIERS", list),
    "engines": ("engines.choice.ENGINES", list),
    "estimators": ("estimate.counts.ESTIMATORS", list),
    "explained engines": (
        "engines.choice.ENGINES",
        lambda found: [one.explanation for one in found.values()],
    ),
    "estimator labels": (
        "estimate.counts.ESTIMATORS",
        lambda found: [one.label.lower() for one in found.values()],
    ),
    "formats": ("sources.formats.local_formats", lambda found: [one.label for one in found()]),
    "presets": ("policy.presets.PRESETS", list),
    "recommended": ("policy.sampling_rules.recommended", lambda found: [*found()]),
    "sampling rules": (
        "policy.sampling_rules.offered",
        lambda found: [one.name for one in found()],
    ),
}


def names_of(kind: str) -> list[str]:
    """The names of one kind; ``attacks using`` is followed by a field of an effort."""
    if kind.startswith("attacks using "):
        return attacks_using(kind.removeprefix("attacks using "))
    place, listing = _PLACES[kind]
    return listing(_found(place))


def _found(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"reconpriv.{module}"), name)


def attacks_using(effort: str) -> list[str]:
    """The attacks that use this field of an effort."""
    return [one.name for one in _found("attacks.run.ATTACKS").values() if effort in one.uses]


def one_of(*names: str) -> Callable[[str], list[str]]:
    """What a shell offers for a word that must be one of these."""
    # Typer finds the argument by its name.
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def registered(kind: str) -> Callable[[str], list[str]]:
    """What a shell offers for a word that must be a registered name."""
    return lambda incomplete: [n for n in names_of(kind) if n.startswith(incomplete)]


def fill_in(parameters: Iterable[Any]) -> None:
    """Put the names into the help of options and arguments, and into their placeholders.

    The text with its placeholders is kept, since more may be registered later.
    """
    for one in parameters:
        for part in ("help", "metavar"):
            text = one.__dict__.setdefault(f"{part}_with_places", getattr(one, part, None))
            if text and "{" in text:
                setattr(one, part, _PLACE.sub(_listed, text))


def _listed(place: re.Match[str]) -> str:
    names, mark = names_of(place[1]), place[2]
    return mark.join(names) if mark else listed(names, "or")
