"""The command that helps to choose a policy: tune."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.output import reported, say_all, show, show_json, ticking
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.tuning.report import TuneReport

SWEEP = "Sweep"
TARGET = "Target"
_MOST = 1_000
EXIT_OUT_OF_REACH = 1

Numbers = str | None


def _numbers(letter: str, name: str, what: str) -> object:
    return typer.Option(
        letter, name, metavar="A,B,…|FROM:TO:STEP", help=what, rich_help_panel=SWEEP
    )


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = (
        "[bold]Example[/bold]\n\nreconpriv tune example:adult -s occupation --public age,sex,race"
        " --missing value --max-error 0.1"
    )
    app.command(rich_help_panel=opt.PUBLISHER, epilog=example)(tune)


@taking_table()
def tune(
    table: TableOptions,
    retention: Annotated[Numbers, _numbers("-p", "--retention", "Values of p to try.")] = None,
    epsilon: Annotated[Numbers, _numbers("-e", "--epsilon", "Values of ε to try.")] = None,
    delta: Annotated[Numbers, _numbers("-d", "--delta", "Values of δ to try.")] = None,
    sample_size: Annotated[
        str | None,
        typer.Option(
            "--sample-size",
            metavar="octave,public,…",
            help="Sample sizes to try (octave, public, paper, none).",
            rich_help_panel=SWEEP,
        ),
    ] = None,
    bound: opt.BoundName = "chernoff",
    max_error: Annotated[
        float | None,
        typer.Option("--max-error", help="The largest acceptable mean relative error of count"
                     " queries.", rich_help_panel=TARGET),
    ] = None,
    rho1: Annotated[
        float | None,
        typer.Option("--rho1", help="The belief before (0.1).", rich_help_panel=TARGET),
    ] = None,
    rho2: Annotated[
        float | None,
        typer.Option("--rho2", help="The largest belief allowed after.", rich_help_panel=TARGET),
    ] = None,
    min_group_error: Annotated[
        float | None,
        typer.Option("--min-group-error", help="The least relative error an adversary must make"
                     " in every group.", rich_help_panel=TARGET),
    ] = None,
    queries: Annotated[int, typer.Option("--queries", help="Queries to judge by.")] = 5_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same queries.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Write every setting here, a CSV file."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    json: opt.Json = False,
) -> None:  # fmt: skip
    """Which p, ε, δ and sample size? Tries many on the table, publishes none.

    Says for each how far count queries would be off and how well a group would be told, and
    recommends one for a target. The result is for the publisher. Exits 1 where no setting
    reaches the target.
    """
    with reported():
        if overwrite and out is None:
            raise PolicyError("--overwrite goes with -o.")
        lists = {
            "retentions": parse_numbers("-p", retention),
            "epsilons": parse_numbers("-e", epsilon),
            "deltas": parse_numbers("-d", delta),
        }
        from reconpriv.files import check_file

        if out is not None:
            check_file(out, overwrite=overwrite, private=True)
        opened = table.open()
        with contextlib.closing(opened), ticking(opened.schema.records) as ticker:
            report = opened.tune(
                **lists,
                sample_sizes=None if sample_size is None else opt.split_names(sample_size),
                bound=bound,
                max_error=max_error,
                rho1=rho1,
                rho2=rho2,
                min_group_error=min_group_error,
                queries=queries,
                seed=seed,
                progress=ticker,
            )
        say_all("warning", report.warnings)
        if out is not None:
            _write(report, out, overwrite)
        if json:
            show_json(report.as_dict() if out is None else _brief(report, out))
        else:
            from reconpriv.render_tune import tune_view

            show(tune_view(report))
    if report.target.stated and report.recommended is None:
        raise typer.Exit(EXIT_OUT_OF_REACH)


def _write(report: TuneReport, out: Path, overwrite: bool) -> None:
    import pyarrow.csv

    from reconpriv.files import whole_file

    with whole_file(out, overwrite=overwrite, private=True) as work:
        pyarrow.csv.write_csv(report.to_arrow(), str(work))


def _brief(report: TuneReport, out: Path) -> dict[str, object]:
    """The report without its settings, which are in the file."""
    brief: dict[str, object] = {**report.as_dict(), "file": str(out)}
    brief["settings"] = len(report.settings)
    return brief


def parse_numbers(option: str, text: str | None) -> list[float] | None:
    """A list such as 0.3,0.5 or a range such as 0.1:0.9:0.05, both ends included."""
    if text is None:
        return None
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
            hint="Write 0.3,0.5,0.7 or, from, to and step, 0.1:0.9:0.1.",
        )
    if ":" not in text:
        return parts
    low, high, step = parts
    steps = math.floor((high - low) / step + 1e-9)
    return [round(low + i * step, 12) for i in range(steps + 1)]
