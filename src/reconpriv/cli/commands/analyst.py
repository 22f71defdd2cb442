"""The analyst's commands: query, info, export, report and workload."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.charting import CHART, check_chart_option, give_answer
from reconpriv.cli.options.declared import argument, option, taking
from reconpriv.cli.options.shared import open_with_warnings
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.cli.process.output import say_all, show, show_json
from reconpriv.cli.process.streams import echo, printing
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.release.release import Release

OUTPUT: Any = option("-o, --out FILE", "The CSV file to write.")


def query(
    release: Path = opt.RELEASE,
    sql: str | None = argument(
        "SQL", "SELECT \\[columns,] count(*), share(…), avg(…), … FROM release …", None
    ),
    batch: Path | None = option(
        "--batch FILE",
        "A CSV file of queries: one column per attribute, or a single column named sql.",
    ),
    out: Path | None = OUTPUT,
    overwrite: bool = option("--overwrite", "Replace the file, or the chart.", False),
    estimator: str = opt.ESTIMATOR,
    confidence: float = opt.CONFIDENCE,
    simultaneous: bool = option(
        "--simultaneous", "With GROUP BY: make all intervals hold at once, at that level.", False
    ),
    whole_bins: bool = opt.WHOLE_BINS,
    score: opt.Texts = option(
        "--score VALUE=NUMBER",
        "The number that a sensitive value stands for in averages; for every value.",
        repeatable=True,
    ),
    chart: Path | None = CHART,
    memory: str | None = opt.MEMORY,
    json: bool = opt.JSON,
) -> None:
    """Answer queries from a release, with intervals for the values in the original table."""
    if (sql is None) == (batch is None):
        raise PolicyError("Give either an SQL query or --batch FILE.")
    for given, needs in (
        (out is not None and batch is None, "-o needs --batch"),
        (overwrite and out is None and chart is None, "--overwrite needs -o or --chart"),
        (batch is not None and chart is not None, "--chart needs a query, not --batch"),
        (batch is not None and simultaneous, "--simultaneous needs a GROUP BY query, not --batch"),
    ):
        if given:
            raise PolicyError(f"{needs}.")
    if chart is not None:
        check_chart_option(chart, overwrite=overwrite)
    opened = open_with_warnings(release, memory)
    if batch is not None:
        from reconpriv.answers.batch import read_batch

        scores = _scores(opened, score)
        rows, questions = read_batch(batch, opened, whole_bins=whole_bins, scores=scores)
        answers = opened.answer_many(questions, estimator=estimator, confidence=confidence)
        _write_batch(rows, answers, out, overwrite, json)
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
    from reconpriv.answers.figure import Figure
    from reconpriv.estimate.counts import Estimate

    if simultaneous and isinstance(answer, Estimate | Figure):
        what = "count" if isinstance(answer, Estimate) else "figure"
        raise PolicyError(f"--simultaneous needs a GROUP BY query; this is a single {what}.")
    give_answer(answer, chart, overwrite=overwrite, json=json)


def _scores(release: Release, said: list[str] | None) -> dict[object, float] | None:
    """The scores of sensitive values, as VALUE=NUMBER."""
    if not said:
        return None
    from reconpriv.columns.schema import parse_value

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


def _write_batch(
    rows: list[list[str]], answers: list[Any], out: Path | None, overwrite: bool, json: bool
) -> None:
    from reconpriv.answers.batch import write_answers

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


def info(release: Path = opt.RELEASE, json: bool = opt.JSON) -> None:
    """Explain a release: what is exact, what is estimated, and how."""
    opened = open_with_warnings(release)
    if json:
        show_json(opened.info())
    else:
        from reconpriv.show.results.release import info_document

        show(info_document(opened))


def export(
    release: Path = opt.RELEASE,
    file: Path = argument("FILE", "A .sav, .zsav, .dta, .xpt, .csv or .parquet file."),
    groups: bool = option(
        "--groups", "Write the groups with their trials instead of the records.", False
    ),
    margins: bool = option("--margins", "Write the margins instead of the records.", False),
    plain: bool = option(
        "--plain", "Write the records alone, without their trials and without a script.", False
    ),
    overwrite: bool = opt.OVERWRITE,
    json: bool = opt.JSON,
) -> None:
    """Write the published records, with their labels, for SPSS, Stata, SAS or R.

    Records carry the trials and the design weight of their group. A script beside the file (.sps,
    .do, .sas, or .R for .csv and .parquet) corrects a count and gives its standard error.
    """
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
    release: Path = opt.RELEASE,
    out: Path = option("-o, --out FILE", "The HTML file to write.", Path("report.html")),
    overwrite: bool = opt.OVERWRITE,
    json: bool = opt.JSON,
) -> None:
    """Write a page for analysts: what is exact, how far off the rest is, how to query it.

    One HTML file, made from the release alone, so it may be published with the release.
    """
    from reconpriv.writing.file import check_file

    check_file(out, overwrite=overwrite)
    open_with_warnings(release).report(out, overwrite=overwrite)
    if json:
        show_json({"release": str(release), "file": str(out)})
    else:
        echo(f"Report written to {shown_path(out)}.")


@taking(TableOptions, left_out=ENGINE)
def workload(
    table: TableOptions,
    queries: int = option("--queries", "How many queries to draw.", 5_000),
    min_selectivity: float = option(
        "--min-selectivity", "The smallest share of records in an answer.", 0.001
    ),
    max_attributes: int = option("--max-attributes", "The most public attributes per query.", 3),
    seed: int = option("--seed", "The same seed gives the same pool.", 0),
    release: Path | None = option("--release RELEASE", "Also measure this release's error."),
    estimator: str = opt.ESTIMATOR,
    out: Path | None = OUTPUT,
    overwrite: bool = opt.OVERWRITE,
    json: bool = opt.JSON,
) -> None:
    """Draw the paper's pool of random count queries; measure a release's error on it."""
    from reconpriv.estimate.counts import ESTIMATORS

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
        from reconpriv.ask.workload import write_workload

        with _csv_output(out, overwrite, private="a workload") as stream:
            write_workload(stream, pool)
        summary["file"] = str(out)
    if json:
        show_json(summary)
        return
    for name, value in summary.items():
        shown = f"{value:.4f}" if isinstance(value, float) else value
        echo(f"{name.replace('_', ' '):22}{shown}")
