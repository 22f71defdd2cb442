"""The command that helps to choose a policy: tune."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import option, taking
from reconpriv.cli.options.policy import harmless_values
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.cli.process.output import give, say_all, show_json
from reconpriv.cli.process.progress import ticking
from reconpriv.cli.process.streams import echo
from reconpriv.errors import PolicyError
from reconpriv.messages.commands import Part, policy_parts, publish_command
from reconpriv.messages.redaction import without_secrets

if TYPE_CHECKING:
    from reconpriv.columns.schema import Schema
    from reconpriv.policy.policy import Policy
    from reconpriv.policy.presets import Fitted, Preset
    from reconpriv.tuning.report import Setting, TuneReport

KEY_FILE = "my.key"
_MOST = 1_000
EXIT_OUT_OF_REACH = 1

_POLICY_FIELDS = {
    "p": "retention",
    "e": "epsilon",
    "d": "delta",
    "sample-size": "sample_size",
    "margins": "margins",
    "bound": "bound",
    "exposed-above": "exposed_above",
}


def _sweep(usage: str, help: str, **more: Any) -> Any:
    """Several values to try."""
    return option(usage, help, repeatable=True, rich_help_panel="Sweep", **more)


def _numbers(names: str, help: str) -> Any:
    return _sweep(f"{names} A,B,…|FROM:TO:STEP", help)


def _target(usage: str, help: str, default: Any = None, **more: Any) -> Any:
    return option(usage, help, default, rich_help_panel="Target", **more)


@taking(TableOptions, left_out=ENGINE)
def tune(
    table: TableOptions,
    retention: opt.Texts = _numbers("-p, --retention", "Values of p to try."),
    epsilon: opt.Texts = _numbers("-e, --epsilon", "Values of ε to try."),
    delta: opt.Texts = _numbers("-d, --delta", "Values of δ to try."),
    sample_size: opt.Texts = _sweep(
        "--sample-size {recommended,},…", "Sample sizes to try ({sample sizes})."
    ),
    margins: opt.Texts = _numbers(
        "--margins",
        "Values of the margins' ε to try, 0 for no margins; by default that of the current policy.",
    ),
    exposed_above: opt.Texts = _numbers(
        "--exposed-above",
        "Values of φ to try: only values that more than this share of a group hold are protected;"
        " by default that of the current policy.",
    ),
    harmless: opt.Texts = _sweep(
        "--harmless VALUE,…",
        "Sensitive values that need no protection, in every setting; NULL is the missing value.",
    ),
    bound: str | None = option(
        "--bound",
        "{bounds}; by default that of the current policy.",
        choices="bounds",
        rich_help_panel="Sweep",
    ),
    max_error: float | None = _target(
        "--max-error", "The largest acceptable mean relative error of count queries."
    ),
    rho1: float | None = _target("--rho1", "The belief before seeing a record; 0.1 if not given."),
    rho2: float | None = _target("--rho2", "The largest belief allowed after seeing a record."),
    min_group_error: float | None = _target(
        "--min-group-error", "The smallest relative error an adversary must make in every group."
    ),
    max_reconstructed: float | None = _target(
        "--max-reconstructed SHARE",
        "The largest share of people whose group's most exposed value may be estimated within ±50 %"
        " from the group's own records.",
    ),
    max_pooled: float | None = _target(
        "--max-pooled SHARE", "The same for an adversary who also uses neighbouring groups; slower."
    ),
    preset: str | None = _target(
        "--preset NAME",
        "The policy in use by name ({presets}), recommended if not given; --current changes it.",
        choices="presets",
    ),
    current: opt.Texts = _target(
        "--current p=0.5,e=0.5,…",
        "The policy in use: p, e, d, sample-size, margins, bound, exposed-above; the rest is as in"
        " the preset.",
        repeatable=True,
    ),
    weaker_records: bool = _target(
        "--weaker-records",
        "Also recommend settings that protect single records less than the current policy.",
        False,
    ),
    pooled: bool | None = option(
        "--pooled/--no-pooled",
        "Whether to measure what an adversary learns who also uses neighbouring groups; by default"
        " if it takes seconds.",
        show_default=False,
    ),
    queries: int = option("--queries", "How many queries to judge by.", 5_000),
    seed: int = option("--seed", "The same seed gives the same queries.", 0),
    out: Path | None = option("-o, --out FILE", "A CSV file to write all settings to."),
    overwrite: bool = opt.OVERWRITE,
    json: bool = opt.JSON,
) -> None:
    """Find p, ε, δ, a sample size and margins: try many on the table, publish none.

    For each setting, estimates how far off count queries and an adversary would
    be and for how many people the adversary would be close, shows where the
    current policy stands, recommends a setting for your target and prints the
    publish command for it, or says which target is the obstacle. Without --rho2
    or --weaker-records, it never recommends a setting whose published values
    reveal more about single records than those of the current policy. Bound, φ
    and margins are those of the current policy unless you list others. The
    result is for the publisher only. Exits 1 if no setting reaches the target.
    """
    if overwrite and out is None:
        raise PolicyError("--overwrite needs -o.")
    p_list = parse_numbers("-p", retention)
    e_list = parse_numbers("-e", epsilon)
    d_list = parse_numbers("-d", delta)
    budgets = parse_numbers("--margins", margins)
    shares = parse_numbers("--exposed-above", exposed_above)
    in_use = InUse.of(None if current is None else ",".join(current), preset)
    from reconpriv.writing.file import RAW, check_file

    if out is not None:
        check_file(out, overwrite=overwrite, private=RAW)
    with ticking() as bar, contextlib.closing(table.open()) as opened:
        bar.records = opened.schema.records
        fit = in_use.on(opened.schema)
        report = opened.tune(
            retentions=p_list,
            epsilons=e_list,
            deltas=d_list,
            sample_sizes=opt.listed_names("--sample-size", sample_size, "sample size"),
            exposed_above=shares,
            harmless=None if harmless is None else harmless_values(harmless),
            margins=budgets,
            bound=bound,
            max_error=max_error,
            rho1=rho1,
            rho2=rho2,
            min_group_error=min_group_error,
            max_reconstructed=max_reconstructed,
            max_pooled=max_pooled,
            current=fit.policy,
            weaker_records=weaker_records,
            pooled=pooled,
            queries=queries,
            seed=seed,
            progress=bar,
        ).noted(fit.notes)
    say_all("warning", report.warnings)
    if out is not None:
        _write(report, out, overwrite)
    # A command that publish would refuse is not worth pasting.
    command = None if report.identifiers else _command(table, report.recommended)
    if json:
        show_json(_as_json(report, command, out))
    else:
        give(report, json=False)
        if command is not None:
            # Not by rich, which would cut off a long line.
            echo(f"\nTo publish with it (`reconpriv keygen {KEY_FILE}` makes a key):\n")
            echo(command, nl=False)
    if report.identifiers and report.recommended is not None:
        say_all("note", [_refused(report)])
    if report.target.stated and report.recommended is None:
        raise typer.Exit(EXIT_OUT_OF_REACH)


def _write(report: TuneReport, out: Path, overwrite: bool) -> None:
    import pyarrow.csv

    from reconpriv.writing.file import RAW, whole_file

    with whole_file(out, overwrite=overwrite, private=RAW) as work:
        pyarrow.csv.write_csv(report.to_arrow(), str(work))


def _as_json(report: TuneReport, command: str | None, out: Path | None) -> dict[str, Any]:
    """The report with the command; settings written to a file are only counted."""
    found: dict[str, Any] = {}
    for name, value in report.as_dict().items():
        found[name] = value
        if name == "recommended":
            found["command"] = command
    if out is not None:
        found |= {"settings": len(report.settings), "file": str(out)}
    return found


def _command(table: TableOptions, chosen: Setting | None) -> str | None:
    """The publish command for a setting, with the table options that were given."""
    if chosen is None:
        return None
    parts: list[Part] = [*table.parts(), *policy_parts(chosen.policy), ("--key", KEY_FILE)]
    if without_secrets(table.source) != table.source:
        return publish_command("DATABASE_URL", parts, variable=True)
    return publish_command(table.source, parts)


def _refused(report: TuneReport) -> str:
    """Why there is no publish command for the recommended setting."""
    from reconpriv.auditing.column_risk import identifier_sentence

    before = "no publish command is printed, since it would be refused: "
    return identifier_sentence(report.identifiers, report.records, before=before)


@dataclass(frozen=True)
class InUse:
    """The policy in use as the command line describes it: a preset, and what is different."""

    preset: Preset
    given: dict[str, Any]

    @classmethod
    def of(cls, text: str | None, preset: str | None = None) -> InUse:
        """A policy written as p=0.5,e=0.5,d=0.3,sample-size=octave; the rest as in the preset."""
        from reconpriv.policy.presets import DEFAULT, PRESETS

        base = DEFAULT if preset is None else PRESETS.find(preset)
        return cls(base, {} if text is None else _parsed_policy(text))

    @property
    def policy(self) -> Policy:
        """The policy, whatever the table."""
        return replace(self.preset.policy, **self.given)

    def on(self, schema: Schema) -> Fitted:
        """The policy for a table, as ``publish`` would have it."""
        from reconpriv.policy.presets import RECOMMENDED, Fitted, fitted

        if self.preset is not RECOMMENDED:
            return Fitted(self.policy, ())
        free = {name: name not in self.given for name in ("retention", "margins")}
        return fitted(self.policy, schema, **free)


def _parsed_policy(text: str) -> dict[str, Any]:
    """The fields of a policy that a text sets."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        field = _POLICY_FIELDS.get(name)
        if field is None or not sign or not value or field in found:
            raise _no_policy(text)
        try:
            found[field] = value if field in ("sample_size", "bound") else float(value)
        except ValueError:
            raise _no_policy(text) from None
    if found.get("margins") == 0:
        found["margins"] = None
    return found


def _no_policy(text: str) -> PolicyError:
    return PolicyError(
        f"--current takes a policy; got {text!r}.",
        hint="Write p=0.5,e=0.5,d=0.05,sample-size=octave; the rest is as in publish.",
    )


def parse_numbers(option: str, texts: Sequence[str] | None) -> list[float] | None:
    """The numbers in all texts of an option; None if it was not given."""
    return None if texts is None else [one for text in texts for one in _parsed(option, text)]


def _parsed(option: str, text: str) -> list[float]:
    """A list such as 0.3,0.5 or a range such as 0.1:0.9:0.05, both ends included."""
    try:
        parts = [float(part) for part in text.split(":" if ":" in text else ",")]
    except ValueError:
        parts = []
    good = bool(parts) and all(math.isfinite(part) for part in parts)
    if good and ":" in text:
        good = len(parts) == 3 and parts[2] > 0 and parts[0] <= parts[1]
        good = good and (parts[1] - parts[0]) / parts[2] < _MOST
    if not good:
        raise PolicyError(
            f"{option} takes numbers; got {text!r}.",
            hint="Write a list (0.3,0.5,0.7) or a range with its step (0.1:0.9:0.1).",
        )
    if ":" not in text:
        return parts
    low, high, step = parts
    steps = math.floor((high - low) / step + 1e-9)
    return [round(low + i * step, 12) for i in range(steps + 1)]
