"""How an option is declared: once, as its usage shows it, with its help and its default.

    memory: str | None = option("--memory 2GB", "Memory for counting before spilling to disk.")

is a parameter of a command. Options that several commands share are fields of a frozen dataclass,
declared by :func:`shared`; a command takes it as one parameter, which :func:`taking` replaces with
its fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, get_type_hints

import typer
from typer.models import ParameterInfo

from reconpriv.cli.options.choices import one_of, registered

CommandFunction = Callable[..., Any]
Parse = Callable[[str, Any], Any]
"""From the name of an option and its value to the argument in Python."""
REQUIRED = ...
# A placeholder that lists words to choose from, or that stands for a registry.
_WORDS = re.compile(r"[a-z-]+(\|[a-z-]+)+")
_REGISTRY = re.compile(r"\{([a-z ]+)\|\}")


def option(
    usage: str,
    help: str,
    default: Any = None,
    *,
    choices: str = "",
    repeatable: bool = False,
    **more: Any,
) -> Any:
    """An option such as ``-o, --out FILE``; ``choices`` is the registry that its value is from.

    If the placeholder lists the choices, as in ``--missing refuse|drop``, the shell offers them.
    A ``repeatable`` one takes a list, to which it adds each time it is given.
    """
    words = usage.split()
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    place = " ".join(word for word in words if not word.startswith("-")) or None
    more.setdefault("autocompletion", _offered(place or "", choices))
    text = f"{help} Repeatable." if repeatable else help
    return typer.Option(default, *names, help=text, metavar=place, **more)


def argument(
    place: str, help: str, default: Any = REQUIRED, *, choices: str = "", **more: Any
) -> Any:
    """An argument by its place in the usage."""
    more.setdefault("autocompletion", _offered(place, choices))
    return typer.Argument(default, metavar=place, help=help, show_default=False, **more)


def _offered(place: str, choices: str) -> Callable[[str], list[str]] | None:
    registry = _REGISTRY.fullmatch(place)
    if choices or registry:
        return registered(registry[1] if registry else choices)
    return one_of(*place.split("|")) if _WORDS.fullmatch(place) else None


def shared(declared: Any, *more: Any, parse: Parse | None = None, **further: Any) -> Any:
    """A field of a dataclass of options: an option, or the arguments of :func:`option`."""
    if isinstance(declared, str):
        declared = option(declared, *more, **further)
    default = None if declared.default is REQUIRED else declared.default
    return dataclasses.field(default=default, metadata={"declared": declared, "parse": parse})


def arguments(options: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Fields of a dataclass of options, or these, as arguments in Python, parsed as was declared.

    Parsing may read a file, which could be a pipe: do it once.
    """
    found = {}
    for one in dataclasses.fields(options):
        if names is None or one.name in names:
            value, parse = getattr(options, one.name), one.metadata["parse"]
            name = option_name(one.metadata["declared"])
            found[one.name] = value if parse is None else parse(name, value)
    return found


def declared_in(options: type) -> dict[str, ParameterInfo]:
    """The options of a dataclass by the names of its fields."""
    return {one.name: one.metadata["declared"] for one in dataclasses.fields(options)}


def option_name(declared: ParameterInfo) -> str:
    """The first name of an option."""
    return (declared.param_decls or ("",))[0]


def optional(options: type, field: str) -> Any:
    """A field that a command does not require."""
    found = copy(declared_in(options)[field])
    found.default = None
    return found


def taking(
    *, left_out: Sequence[str] = (), instead: Mapping[str, Any] | None = None
) -> Callable[[CommandFunction], CommandFunction]:
    """Replace each parameter whose type is a dataclass of options with its fields.

    ``left_out`` are fields that the command has no use for, ``instead`` declares others anew.
    """

    def replaced(command: CommandFunction) -> CommandFunction:
        own = get_type_hints(command)
        parameters: list[inspect.Parameter] = []
        holders: dict[str, list[str]] = {}
        for name, one in inspect.signature(command).parameters.items():
            if not dataclasses.is_dataclass(own[name]):
                parameters.append(parameter(name, own[name], one.default))
                continue
            hints, fields = get_type_hints(own[name]), declared_in(own[name])
            holders[name] = [field for field in fields if field not in left_out]
            declared = fields | dict(instead or {})
            parameters += (parameter(one, hints[one], declared[one]) for one in holders[name])

        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            held = {
                name: own[name](**{field: given.pop(field) for field in fields})
                for name, fields in holders.items()
            }
            return command(**held, **given)

        return signed(with_options, parameters)

    return replaced


def signed(command: CommandFunction, parameters: Sequence[inspect.Parameter]) -> CommandFunction:
    """The command with these parameters, from which Typer makes arguments and options."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def parameter(name: str, hint: Any, declared: Any) -> inspect.Parameter:
    """A keyword-only parameter, so one with a default may precede one without."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=declared
    )
