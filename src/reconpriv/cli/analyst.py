"""The analyst's commands: query, info, export, report and workload."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.chart_option import ChartFile, check_chart_option, give_answer
from reconpriv.cli.output import reported, say_all, show, show_json
from reconpriv.cli.release_options import (
    Confidence,
    EstimatorName,
    ReleaseFolder,
    WholeBins,
    open_with_warnings,
)
from reconpriv.cli.streams import echo, printing
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.release.release import Release

Output = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="FILE", help="The CSV file to write.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE
        + "reconpriv query release/ \"SELECT sex, count(*) FROM release WHERE occupation = 'Sales'"
        ' GROUP BY sex"',
    )(query)
    app.command(rich_help_panel=opt.ANALYST, epilog=opt.EXAMPLE + "reconpriv info release/")(info)
    app.command(
        rich_help_panel=opt.ANALYST, epilog=opt.EXAMPLE + "reconpriv export release/ people.sav"
    )(export)
    app.command(
        rich_help_panel=opt.ANALYST, epilog=opt.EXAMPLE + "reconpriv report release/ -o report.html"
    )(report)
    app.command(
        rich_help_panel=opt.ANALYST,
        epilog=opt.EXAMPLE
        + "reconpriv workload example:adult -s occupation --public age,sex,race --missing value"
        " --release release/",
    )(workload)


def query(
    release: ReleaseFolder,
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="SELECT \\[columns,] count(*), share(…), avg(…), … FROM release …"
        ),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help="A CSV file of queries: one column per attribute, or a single column named sql.",
        ),
    ] = None,
    out: Output = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file, or the chart.")
    ] = False,
    estimator: EstimatorName = "mle",
    confidence: Confidence = 0.95,
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous", help="With GROUP BY: make all intervals hold at once, at that level."
        ),
    ] = False,
    whole_bins: WholeBins = False,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="VALUE=NUMBER",
            help="The number that a sensitive value stands for in averages; for every value."
            " Repeatable.",
        ),
    ] = None,
    chart: ChartFile = None,
    memory: opt.Memory = None,
    json: opt.Json = False,
) -> None:
    """Answer queries from a release, with intervals for the values in the original table."""
    with reported():
        if (sql is None) == (batch is None):
            raise PolicyError("Give either an SQL query or --batch FILE.")
        if out is not None and batch is None:
            raise PolicyError("-o needs --batch.")
        if overwrite and out is None and chart is None:
            raise PolicyError("--overwrite needs -o or --chart.")
        if chart is not None and batch is not None:
            raise PolicyError("--chart needs a query, not --batch.")
        if score and batch is not None:
            raise PolicyError("--score needs a query, not --batch.")
        if simultaneous and batch is not None:
            raise PolicyError("--simultaneous needs a GROUP BY query, not --batch.")
        if chart is not None:
            check_chart_option(chart, overwrite=overwrite)
        opened = open_with_warnings(release, memory)
        if batch is not None:
            _answer_batch(opened, batch, out, overwrite, estimator, confidence, whole_bins, json)
            return
        assert sql is not None
        answer = opened.sql(
            sql,
            estimator=estimator,
            confidence=confidence,
            simultaneous=simultaneous,
            whole_bins=whole_bins,
            scores=_scores(opened, score),
        )
        from reconpriv.queries.estimate import Estimate
        from reconpriv.queries.figure import Figure

        if simultaneous and isinstance(answer, Estimate | Figure):
            what = "count" if isinstance(answer, Estimate) else "figure"
            raise PolicyError(f"--simultaneous needs a GROUP BY query; this is a single {what}.")
        from reconpriv.show.figures import answer_view

        give_answer(answer, answer_view, chart, overwrite=overwrite, json=json)


def _scores(release: Release, said: list[str] | None) -> dict[object, float] | None:
    """The scores of sensitive values, as VALUE=NUMBER."""
    if not said:
        return None
    from reconpriv.schema import parse_value

    scores: dict[object, float] = {}
    for one in said:
        value, equals, number = one.rpartition("=")
        try:
            score = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise PolicyError(f"--score takes VALUE=NUMBER; got {one!r}.")
        named = parse_value(release.description.schema.sensitive, value)
        if named in scores:
            raise PolicyError(f"--score is given twice for the value {value!r}.")
        scores[named] = score
    return scores


def _answer_batch(
    release: Release,
    batch: Path,
    out: Path | None,
    overwrite: bool,
    estimator: str,
    confidence: float,
    whole_bins: bool,
    json: bool,
) -> None:
    from reconpriv.queries.batch import read_batch, write_answers

    rows, selected = read_batch(batch, release, whole_bins=whole_bins)
    answers = release.answer_many(selected, estimator=estimator, confidence=confidence)
    if out is not None or not json:
        with _csv_output(out, overwrite) as stream:
            write_answers(stream, rows, answers)
    if json and out is None:
        show_json({"answers": [answer.as_dict() for answer in answers]})
    elif json:
        show_json({"answers": len(answers), "file": str(out)})


@contextlib.contextmanager
def _csv_output(out: Path | None, overwrite: bool, private: str = "") -> Iterator[TextIO]:
    """Standard output, or a file that appears only when complete.

    ``private`` names what only its owner may read.
    """
    if out is None:
        with printing():
            yield sys.stdout
            sys.stdout.flush()
        return
    from reconpriv.writing.file import whole_file

    with (
        whole_file(out, overwrite=overwrite, private=private) as work,
        work.open("w", encoding="utf-8", newline="") as stream,
    ):
        yield stream


def info(release: ReleaseFolder, json: opt.Json = False) -> None:
    """Explain a release: what is exact, what is estimated, and how."""
    with reported():
        opened = open_with_warnings(release)
        if json:
            show_json(opened.info())
        else:
            from reconpriv.show.release import info_view

            show(info_view(opened))


def export(
    release: ReleaseFolder,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A .sav, .zsav, .dta, .xpt, .csv or .parquet file."),
    ],
    groups: Annotated[
        bool,
        typer.Option("--groups", help="Write the groups with their trials instead of the records."),
    ] = False,
    margins: Annotated[
        bool, typer.Option("--margins", help="Write the margins instead of the records.")
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Write the records alone, without their trials and without a script."
        ),
    ] = False,
    overwrite: Overwrite = False,
    json: opt.Json = False,
) -> None:
    """Write the published records, with their labels, for SPSS, Stata, SAS or R.

    Records carry the trials and the design weight of their group. A script beside the file (.sps,
    .do, .sas, or .R for .csv and .parquet) corrects a count and gives its standard error.
    """
    with reported():
        from reconpriv.release.export import check_export, script_path

        if groups and margins:
            raise PolicyError("Give either --groups or --margins, not both.")
        if plain and (groups or margins):
            raise PolicyError("--plain is for records, not for groups or margins.")
        scripted = not (groups or margins or plain)
        check_export(file, overwrite=overwrite, script=scripted)
        notes = open_with_warnings(release).export(
            file, groups=groups, margins=margins, plain=plain, overwrite=overwrite
        )
        say_all("note", notes)
        script = {"script": str(script_path(file))} if scripted else {}
        if json:
            show_json({"release": str(release), "file": str(file), **script, "notes": list(notes)})
        else:
            what = "Groups" if groups else "Margins" if margins else "Records"
            echo(f"{what} written to {shown_path(file)}.")
            if scripted:
                echo(f"{shown_path(script_path(file))} shows how to count in it.")


def report(
    release: ReleaseFolder,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="The HTML file to write.")
    ] = Path("report.html"),
    overwrite: Overwrite = False,
    json: opt.Json = False,
) -> None:
    """Write a page for analysts: what is exact, how far off the rest is, how to query it.

    One HTML file, made from the release alone, so it may be published with the release.
    """
    with reported():
        from reconpriv.writing.file import check_file

        check_file(out, overwrite=overwrite)
        open_with_warnings(release).report(out, overwrite=overwrite)
        if json:
            show_json({"release": str(release), "file": str(out)})
        else:
            echo(f"Report written to {shown_path(out)}.")


@taking_table()
def workload(
    table: TableOptions,
    queries: Annotated[int, typer.Option("--queries", help="How many queries to draw.")] = 5_000,
    min_selectivity: Annotated[
        float, typer.Option("--min-selectivity", help="The smallest share of records in an answer.")
    ] = 0.001,
    max_attributes: Annotated[
        int, typer.Option("--max-attributes", help="The most public attributes per query.")
    ] = 3,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same pool.")] = 0,
    release: Annotated[
        Path | None,
        typer.Option("--release", metavar="RELEASE", help="Also measure this release's error."),
    ] = None,
    estimator: EstimatorName = "mle",
    out: Output = None,
    overwrite: Overwrite = False,
    json: opt.Json = False,
) -> None:
    """Draw the paper's pool of random count queries; measure a release's error on it."""
    with reported():
        from reconpriv.queries.estimate import ESTIMATORS

        if overwrite and out is None:
            raise PolicyError("--overwrite needs -o.")
        if out is not None:
            from reconpriv.writing.marker import refuse_inside_release

            refuse_inside_release(out, "a workload")
        if estimator != "mle" and release is None:
            raise PolicyError("--estimator needs --release.")
        ESTIMATORS.find(estimator)
        opened = table.open()
        with contextlib.closing(opened):
            pool = opened.workload(
                queries=queries,
                min_selectivity=min_selectivity,
                max_attributes=max_attributes,
                seed=seed,
            )
        summary: dict[str, float | int | str] = {
            "queries": len(pool),
            "candidates": pool.candidates,
            "records": pool.records,
        }
        if release is not None:
            summary["mean_relative_error"] = open_with_warnings(release).workload_error(
                pool, estimator=estimator
            )
        if out is not None:
            from reconpriv.queries.workload import write_workload

            with _csv_output(out, overwrite, private="a workload") as stream:
                write_workload(stream, pool)
            summary["file"] = str(out)
        if json:
            show_json(summary)
            return
        for name, value in summary.items():
            shown = f"{value:.4f}" if isinstance(value, float) else value
            echo(f"{name.replace('_', ' '):22}{shown}")
