"""The options that make a policy, the same in every command that takes one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from reconpriv.cli.choices import one_of, registered
from reconpriv.cli.options import POLICY, Texts, listed_names, several

if TYPE_CHECKING:
    from reconpriv.cli.margin_options import MarginOptions
    from reconpriv.core.margins import Margins
    from reconpriv.core.protection import Protection
    from reconpriv.policy import Policy
    from reconpriv.presets import Fitted
    from reconpriv.schema import Schema


def _option(*names: str, help: str, default: str = "", **more: Any) -> Any:
    """An option; its default is that of the preset, so the help names it."""
    text = f"{help} [default: {default}]".replace("[", r"\[") if default else help
    return typer.Option(*names, help=text, show_default=False, rich_help_panel=POLICY, **more)


PresetName = Annotated[
    str | None,
    _option(
        "--preset",
        default="recommended",
        metavar="NAME",
        help="A policy by name ({presets}), which the options below change.",
        autocompletion=registered("presets"),
    ),
]
Retention = Annotated[
    float | None,
    _option("-p", "--retention", default="0.5", help="p, the probability that a value is kept."),
]
Epsilon = Annotated[
    float | None,
    _option(
        "-e", "--epsilon", default="0.5", help="ε, the relative error that must remain possible."
    ),
]
Delta = Annotated[
    float | None,
    _option("-d", "--delta", default="0.05", help="δ: such an error must not be provably rarer."),
]
BoundName = Annotated[
    str | None,
    _option("--bound", default="exact", help="{bounds}.", autocompletion=registered("bounds")),
]
SampleSize = Annotated[
    str | None,
    _option(
        "--sample-size",
        default="octave",
        metavar="{sample sizes|}",
        autocompletion=registered("sample sizes"),
        help="How the number of trials in a large group may depend on its largest exposed"
        " frequency.",
    ),
]
ExposedAbove = Annotated[
    float | None,
    _option(
        "--exposed-above",
        default="0.25",
        metavar="φ",
        help="Protect only values that more than this share of a group hold.",
    ),
]
Harmless = Annotated[
    Texts,
    several(
        "--harmless",
        metavar="VALUE,…",
        help="Sensitive values that need no protection; NULL is the missing value.",
        rich_help_panel=POLICY,
    ),
]
NewsOnly = Annotated[
    bool,
    _option(
        "--news-only",
        help="Protect only values whose share of the group differs by more than ε from their share"
        " of the whole table.",
    ),
]
Unattainable = Annotated[
    str | None,
    _option(
        "--unattainable",
        default="refuse",
        metavar="refuse|one-trial",
        autocompletion=one_of("refuse", "one-trial"),
        help="What to do with groups in which no number of trials is private.",
    ),
]


@dataclass(frozen=True)
class PolicyOptions:
    """A policy as the command line describes it; each field is an option."""

    preset: PresetName = None
    retention: Retention = None
    epsilon: Epsilon = None
    delta: Delta = None
    bound: BoundName = None
    sample_size: SampleSize = None
    exposed_above: ExposedAbove = None
    harmless: Harmless = None
    news_only: NewsOnly = False
    unattainable: Unattainable = None

    @property
    def given(self) -> bool:
        """Whether any of the options was used."""
        return self != PolicyOptions()

    def chosen(
        self, margins: Margins | Literal[False] | None = None, protect: Protection | None = None
    ) -> Policy:
        """The policy that the options stand for: a preset, changed by what was given.

        ``margins`` is False if there are to be none.
        """
        from reconpriv.core.sample_sizes import SAMPLE_SIZES
        from reconpriv.presets import DEFAULT, PRESETS

        base = DEFAULT if self.preset is None else PRESETS.find(self.preset)
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        del given["preset"]
        # 0 is a value that was given; a switch that was not used is False.
        changed = {
            name: value for name, value in given.items() if value is not None and value is not False
        }
        if self.harmless is not None:
            changed["harmless"] = harmless_values(self.harmless)
        if protect is not None:
            changed["protect"] = protect
        counted = SAMPLE_SIZES.find(changed.get("sample_size", base.policy.sample_size))
        if margins is not None:
            changed["margins"] = margins or None
        elif protect is not None or not counted.counts_margins:
            # Those of the preset are left out where they are not counted.
            changed["margins"] = None
        return replace(base.policy, **changed)

    def on(self, policy: Policy, schema: Schema, margins: MarginOptions) -> Fitted:
        """The policy for a table, if it is the recommended one as far as nothing else was given."""
        from reconpriv.presets import DEFAULT, RECOMMENDED, Fitted, fitted

        if (self.preset or DEFAULT.name) != RECOMMENDED.name:
            return Fitted(policy, ())
        free = self.retention is None
        return fitted(policy, schema, retention=free, margins=not margins.given)


NO_POLICY = PolicyOptions()


def harmless_values(texts: Texts) -> tuple[str, ...]:
    """The harmless values that an option lists, as they are in a policy."""
    return tuple(listed_names("--harmless", texts, "sensitive value") or ())
