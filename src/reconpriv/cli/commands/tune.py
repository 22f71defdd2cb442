"""The command that helps to choose a policy: tune."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import Parse, arguments, option, shared, taking
from reconpriv.cli.options.policy import PolicyOptions
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.cli.process.output import Printed, say, say_all
from reconpriv.cli.process.progress import ticking
from reconpriv.errors import PolicyError
from reconpriv.messages.commands import Part, policy_parts, publish_command
from reconpriv.messages.redaction import without_secrets

if TYPE_CHECKING:
    from reconpriv.policy.policy import Policy
    from reconpriv.tuning.report import TuneReport

KEY_FILE = "my.key"
_MOST = 1_000
EXIT_OUT_OF_REACH = 1
_OLD_SAMPLING = "sample-size"

_POLICY_FIELDS = {
    "p": "retention",
    "e": "tolerance",
    "d": "doubt",
    "sampling": "sampling",
    "margins": "margins",
    "bound": "bound",
    "exposed-above": "exposed_above",
}


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


def _sweep(usage: str, help: str, parse: Parse) -> Any:
    """Several values to try."""
    return shared(usage, help, repeatable=True, rich_help_panel="Sweep", parse=parse)


def _numbers(names: str, help: str) -> Any:
    return _sweep(f"{names} A,B,…|FROM:TO:STEP", help, parse_numbers)


@dataclass(frozen=True)
class SweepOptions:
    """What is tried; each field is an option."""

    retentions: opt.Texts = _numbers("-p, --retention", "Values of p to try.")
    tolerances: opt.Texts = _numbers("-e, --tolerance", "Values of the tolerance to try.")
    doubts: opt.Texts = _numbers("-d, --doubt", "Values of the doubt to try.")
    samplings: opt.Texts = _sweep(
        "--sampling {recommended,},…",
        "Sampling rules to try ({sampling rules}).",
        partial(opt.listed_names, what="sampling rule"),
    )
    margins: opt.Texts = _numbers(
        "--margins",
        "Values of the margins' ε to try, 0 for no margins; by default that of the current policy.",
    )
    exposed_above: opt.Texts = _numbers(
        "--exposed-above",
        "Values of φ to try: only values that more than this share of a group hold are protected;"
        " by default that of the current policy.",
    )
    harmless: opt.Texts = _sweep(
        "--harmless VALUE,…",
        "Sensitive values that need no protection, in every setting; NULL is the missing value.",
        opt.sensitive_values,
    )
    bound: str | None = shared(
        "--bound",
        "{bounds}; by default that of the current policy.",
        choices="bounds",
        rich_help_panel="Sweep",
    )


def _target(usage: str, help: str, default: Any = None) -> Any:
    return shared(usage, help, default, rich_help_panel="Target")


@dataclass(frozen=True)
class TargetOptions:
    """What a setting has to reach, and how it is judged; each field is an option."""

    max_error: float | None = _target(
        "--max-error", "The largest acceptable mean relative error of count queries."
    )
    rho1: float | None = _target("--rho1", "The belief before seeing a record; 0.1 if not given.")
    rho2: float | None = _target("--rho2", "The largest belief allowed after seeing a record.")
    min_group_error: float | None = _target(
        "--min-group-error", "The smallest relative error an adversary must make in every group."
    )
    max_reconstructed: float | None = _target(
        "--max-reconstructed SHARE",
        "The largest share of people whose group's most exposed value may be estimated within ±50 %"
        " from the group's own records.",
    )
    max_pooled: float | None = _target(
        "--max-pooled SHARE", "The same for an adversary who also uses neighbouring groups; slower."
    )
    weaker_records: bool = _target(
        "--weaker-records",
        "Also recommend settings that protect single records less than the current policy.",
        False,
    )
    pooled: bool | None = shared(
        "--pooled/--no-pooled",
        "Whether to measure what an adversary learns who also uses neighbouring groups; by default"
        " if it takes seconds.",
        show_default=False,
    )
    queries: int = shared("--queries", "How many queries to judge by.", 5_000)
    seed: int = shared("--seed", "The same seed gives the same queries.", 0)


@taking(left_out=ENGINE)
def tune(
    table: TableOptions,
    sweep: SweepOptions,
    target: TargetOptions,
    preset: str | None = option(
        "--preset NAME",
        "The policy in use by name ({presets}), recommended if not given; --current changes it.",
        choices="presets",
        rich_help_panel="Target",
    ),
    current: opt.Texts = option(
        "--current p=0.5,e=0.5,…",
        "The policy in use: p, e, d, sampling, margins, bound, exposed-above; the rest is as in"
        " the preset.",
        repeatable=True,
        rich_help_panel="Target",
    ),
    out: Path | None = option("-o, --out FILE", "A CSV file to write all settings to."),
    overwrite: bool = opt.OVERWRITE,
) -> Any:
    """Find a policy: try many settings of p, tolerance, doubt and the rest; publish none.

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
    lists = arguments(sweep)
    in_use = policy_in_use(preset, current)
    policy = in_use.chosen()
    from reconpriv.writing.file import RAW, check_file

    if out is not None:
        check_file(out, overwrite=overwrite, private=RAW)
    with ticking() as bar, contextlib.closing(table.open()) as opened:
        bar.records = opened.schema.records
        fit = in_use.on(policy, opened.schema)
        report = opened.tune(**lists, **vars(target), current=fit.policy, progress=bar)
    report = report.noted(fit.notes)
    say_all("warning", report.warnings)
    if out is not None:
        _write(report, out, overwrite)
    command, after, chosen = None, "", report.recommended
    if chosen is not None and report.identifiers:
        from reconpriv.auditing.column_risk import identifier_sentence

        before = "no publish command is printed, since it would be refused: "
        say_all("note", [identifier_sentence(report.identifiers, report.records, before=before)])
    elif chosen is not None:
        command = command_for(table, chosen.policy)
        key = f"(`reconpriv keygen {KEY_FILE}` makes a key)"
        after = f"\nTo publish with it {key}:\n\n{command}"
    more: dict[str, Any] = {"command": command}
    if out is not None:
        more |= {"settings": len(report.settings), "file": str(out)}
    missed = report.target.stated and chosen is None
    return Printed(report, more=more, after=after, code=EXIT_OUT_OF_REACH if missed else 0)


def _write(report: TuneReport, out: Path, overwrite: bool) -> None:
    import pyarrow.csv

    from reconpriv.writing.file import RAW, whole_file

    with whole_file(out, overwrite=overwrite, private=RAW) as work:
        pyarrow.csv.write_csv(report.to_arrow(), str(work))


def command_for(table: TableOptions, policy: Policy) -> str:
    """The publish command for a policy, with the table options that were given."""
    parts: list[Part] = [*table.parts(), *policy_parts(policy), ("--key", KEY_FILE)]
    if without_secrets(table.source) != table.source:
        return publish_command("DATABASE_URL", parts, variable=True)
    return publish_command(table.source, parts)


def policy_in_use(preset: str | None, texts: Sequence[str] | None) -> PolicyOptions:
    """The options that stand for a preset, changed by p=0.5,e=0.5,sampling=octave."""
    found: dict[str, Any] = {}
    text = ",".join(texts or ())
    for part in text.split(",") if texts else ():
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name == _OLD_SAMPLING:
            name = "sampling"
            say(
                "note", f"{_OLD_SAMPLING} is now called sampling; the old name is accepted for now."
            )
        field = _POLICY_FIELDS.get(name)
        try:
            if field is None or not value or field in found:
                raise ValueError
            found[field] = value if field in ("sampling", "bound") else float(value)
        except ValueError:
            raise PolicyError(
                f"--current takes a policy; got {text!r}.",
                hint="Write p=0.5,e=0.5,d=0.05,sampling=octave; the rest is as in publish.",
            ) from None
    return PolicyOptions(preset=preset, **found)
