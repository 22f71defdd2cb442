"""Options that several commands share, declared once as the fields of a frozen dataclass.

A command takes the dataclass as one parameter; the command line sees its fields.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

Command = Callable[..., None]


def parameters_of(
    options: type, *, left_out: Sequence[str] = (), instead: Mapping[str, Any] | None = None
) -> list[inspect.Parameter]:
    """The fields as keyword parameters; ``instead`` are other types for some of them."""
    hints = get_type_hints(options, include_extras=True) | dict(instead or {})
    return [
        parameter(field.name, hints[field.name], field.default)
        for field in fields(options)
        if field.name not in left_out
    ]


def spread_out(command: Command, groups: Mapping[type, Sequence[inspect.Parameter]]) -> Command:
    """The command with each parameter of such a type replaced by the parameters in it."""
    own = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    holders: dict[str, type] = {}
    for name, declared in inspect.signature(command).parameters.items():
        if own[name] in groups:
            holders[name] = own[name]
            parameters += groups[own[name]]
        else:
            parameters.append(parameter(name, own[name], declared.default))

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        held = {
            name: kind(**{one.name: given.pop(one.name) for one in groups[kind]})
            for name, kind in holders.items()
        }
        command(**held, **given)

    signature = inspect.Signature(parameters)
    with_options.__signature__ = signature  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """A keyword-only parameter, so one with a default may precede one without."""
    missing = default in (inspect.Parameter.empty, MISSING)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=annotation,
        default=inspect.Parameter.empty if missing else default,
    )
