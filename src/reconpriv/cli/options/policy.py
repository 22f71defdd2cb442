"""The options that make a policy, and those that accept what would otherwise be refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options.declared import arguments, shared
from reconpriv.cli.options.shared import (
    POLICY,
    Texts,
    sensitive_values,
    some_names,
    split_assignments,
)
from reconpriv.columns.schema import MAX_UNIQUE
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.columns.schema import Schema
    from reconpriv.policy.margin_settings import Margins
    from reconpriv.policy.policy import Policy
    from reconpriv.policy.presets import Fitted

# The ε of margins if only their tables are chosen; that of the recommended policy.
USUAL_MARGINS = 1.0
_MARGINS = ("margins", "margins_rho", "margins_delta", "margin_tables")
_NAME = r'\s*(?:"((?:[^"]|"")+)"|([^,+"]*[^,+"\s]))\s*'


def split_tables(text: str) -> list[tuple[str, ...]]:
    """Tables separated by commas, columns by +; a column in double quotes may hold both."""
    if not text.strip():
        raise PolicyError("--margin-tables is empty.", hint="Name public columns, or leave it out.")
    if not re.fullmatch(f"{_NAME}([,+]{_NAME})*", text):
        raise PolicyError(
            f"--margin-tables takes columns separated by commas or +; got {text!r}.",
            hint='Put a name that holds a comma, + or " in double quotes, and double any quotes in'
            " it.",
        )
    tables: list[tuple[str, ...]] = []
    for mark, _, quoted, plain in re.findall(f"(^|[,+])({_NAME})", text):
        name = (quoted.replace('""', '"') or plain,)
        if mark == "+":
            tables[-1] += name
        else:
            tables.append(name)
    return tables


def _tables(_: str, texts: Texts) -> list[tuple[str, ...]] | None:
    return None if texts is None else [one for text in texts for one in split_tables(text)]


def _protection(option: str, texts: Texts) -> Any:
    from reconpriv.policy.protection import HOW, Protection

    return Protection.of(split_assignments(option, texts, HOW)) if texts else None


def _option(usage: str, help: str, preset: str = "", default: Any = None, **more: Any) -> Any:
    """An option whose default is that of the ``preset``, so the help names it."""
    text = f"{help} [default: {preset}]".replace("[", r"\[") if preset else help
    return shared(usage, text, default, show_default=False, rich_help_panel=POLICY, **more)


@dataclass(frozen=True)
class PolicyOptions:
    """A policy as the command line describes it; each field is an option."""

    preset: str | None = _option(
        "--preset NAME",
        "A policy by name ({presets}), which the options below change.",
        "recommended",
        choices="presets",
    )
    retention: float | None = _option(
        "-p, --retention", "p, the probability that a value is kept.", "0.5"
    )
    tolerance: float | None = _option(
        "-e, --tolerance",
        "How close to the truth an estimate of a group must come to count as a reconstruction:"
        " 0.5 is ±50 %.",
        "0.5",
    )
    doubt: float | None = _option(
        "-d, --doubt",
        "The smallest probability with which an adversary's estimate must miss by more than the"
        " tolerance, in each direction.",
        "0.05",
    )
    bound: str | None = _option("--bound", "{bounds}.", "exact", choices="bounds")
    sampling: str | None = _option(
        "--sampling {sampling rules|}",
        "What decides how many trials a large group keeps. octave: its size, and by which power of"
        " ½"
        " its largest exposed frequency lies below; public: its size alone; none: all are kept;"
        " paper: the exact frequency, which leaks.",
        "octave",
    )
    exposed_above: float | None = _option(
        "--exposed-above φ",
        "Protect only values that more than this share of a group hold.",
        "0.25",
    )
    harmless: Texts = _option(
        "--harmless VALUE,…",
        "Sensitive values that need no protection; NULL is the missing value.",
        repeatable=True,
        parse=sensitive_values,
    )
    unattainable: str | None = _option(
        "--unattainable refuse|one-trial",
        "What to do with groups in which no number of trials is private.",
        "refuse",
    )
    margins: float | None = _option(
        "--margins ε",
        "Also publish noisy tables of the sensitive column: the ε of all of them together"
        " (differential privacy), or 0 for none.",
        "1",
    )
    margins_rho: float | None = _option(
        "--margins-rho ρ", "Instead of --margins: their ρ (zero-concentrated differential privacy)."
    )
    margins_delta: float | None = _option(
        "--margins-delta δ", "The δ that goes with the ε of margins; by default 1e-9."
    )
    margin_tables: Texts = _option(
        "--margin-tables A,B,A+C,…",
        "The tables of margins: public columns, up to three of them joined by +; by default each"
        " column on its own. A name that holds a comma or + goes in double quotes.",
        repeatable=True,
        parse=_tables,
    )
    protect: Texts = _option(
        "--protect COLUMN=HOW",
        "Extend the promise to whoever pools over this public column: in bins of a width (age=10)"
        " or with borders (age=0,18,65), ignoring it (race=*), where its values are alike"
        " (age=merge), or by a file of groups.",
        repeatable=True,
        parse=_protection,
    )

    def chosen(self) -> Policy:
        """The policy that the options stand for: a preset, changed by what was given."""
        from reconpriv.policy.presets import DEFAULT, PRESETS
        from reconpriv.policy.sampling_rules import SAMPLING_RULES

        base = DEFAULT if self.preset is None else PRESETS.find(self.preset)
        given = arguments(self)
        for name in ("preset", *_MARGINS):
            del given[name]
        changed = {name: value for name, value in given.items() if value is not None}
        counted = SAMPLING_RULES.find(changed.get("sampling", base.policy.sampling))
        # Those of the preset are left out where they are not counted.
        unless = {} if counted.counts_margins else {"margins": None}
        return replace(base.policy, **(unless | changed | self._margins()))

    def on(self, policy: Policy, schema: Schema) -> Fitted:
        """The policy for a table, if it is the recommended one as far as nothing else was given."""
        from reconpriv.policy.presets import DEFAULT, RECOMMENDED, Fitted, fitted

        if (self.preset or DEFAULT.name) != RECOMMENDED.name:
            return Fitted(policy, ())
        free = self.retention is None
        return fitted(policy, schema, retention=free, margins=not self._margins())

    def _margins(self) -> dict[str, Margins | None]:
        """The field of a policy that the options stand for, if any was given; 0 is none."""
        from reconpriv.policy.margin_settings import DELTA, Margins

        said = arguments(self, _MARGINS)
        epsilon, rho, delta, tables = given = [said[name] for name in _MARGINS]
        if epsilon is not None and rho is not None:
            raise PolicyError("Give either --margins or --margins-rho, not both.")
        if given == [None] * len(_MARGINS):
            return {}
        if epsilon == 0:
            if delta is not None or tables is not None:
                raise PolicyError("With --margins 0 there are no margins, so none can be chosen.")
            return {"margins": None}
        usual = USUAL_MARGINS if rho is None else None
        level = usual if epsilon is None else epsilon
        margins = Margins(level, DELTA if delta is None else delta, rho=rho, tables=tables)
        return {"margins": margins}


@dataclass(frozen=True)
class AcceptOptions:
    """What the steward accepts; each field is an option."""

    keep_identifier: Texts = shared(
        "--keep-identifier A,B,…",
        "Nearly unique public columns to publish anyway; others are refused.",
        repeatable=True,
        parse=some_names,
    )
    keep_giveaway: Texts = shared(
        "--keep-giveaway A,B,…",
        "Public columns to publish although they give the sensitive value away.",
        repeatable=True,
        parse=some_names,
    )
    max_unique: float = shared(
        "--max-unique SHARE",
        "The largest share of records that may be unique on the public columns.",
        MAX_UNIQUE,
    )
