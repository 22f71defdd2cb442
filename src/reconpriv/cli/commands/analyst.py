"""The analyst's commands: each asks a release, but for `workload`, which draws questions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import REQUIRED, argument, arguments, option, shared, taking
from reconpriv.cli.options.shared import open_with_warnings
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.cli.process.output import Printed, say_all
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.release.release import Release

OUTPUT: Any = option("-o, --out FILE", "The CSV file to write.")


@taking()
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
    *,
    asked: opt.AnswerOptions,
    score: opt.Texts = option(
        "--score VALUE=NUMBER",
        "The number that a sensitive value stands for in averages; for every value.",
        repeatable=True,
    ),
    drawing: opt.ChartOptions,
    memory: str | None = opt.MEMORY,
) -> Any:
    """Answer queries from a release, with intervals for the values in the original table."""
    if (sql is None) == (batch is None):
        raise PolicyError("Give either an SQL query or --batch FILE.")
    chart, overwrite, simultaneous = drawing.chart, drawing.overwrite, asked.simultaneous
    for given, needs in (
        (out is not None and batch is None, "-o needs --batch"),
        (overwrite and out is None and chart is None, "--overwrite needs -o or --chart"),
        (batch is not None and chart is not None, "--chart needs a query, not --batch"),
        (batch is not None and simultaneous, "--simultaneous needs a GROUP BY query, not --batch"),
    ):
        if given:
            raise PolicyError(f"{needs}.")
    if chart is not None:
        drawing.check()
    opened = open_with_warnings(release, memory)
    scores = _scores(opened, score)
    if batch is not None:
        from reconpriv.answers.batch import read_batch, write_answers

        rows, questions = read_batch(batch, opened, whole_bins=asked.whole_bins, scores=scores)
        answers = opened.answer_many(
            questions, estimator=asked.estimator, confidence=asked.confidence
        )
        text = StringIO()
        write_answers(text, rows, answers)
        if out is None:
            found = {"answers": [answer.as_dict() for answer in answers]}
            return Printed(found, text.getvalue())
        _write(out, text, overwrite=overwrite)
        return Printed({"answers": len(answers), "file": str(out)}, "")
    assert sql is not None
    answer = opened.sql(sql, scores=scores, **vars(asked))
    if simultaneous:
        from reconpriv.answers.figure import Figure
        from reconpriv.estimate.counts import Estimate

        if isinstance(answer, Estimate | Figure):
            what = "count" if isinstance(answer, Estimate) else "figure"
            raise PolicyError(f"--simultaneous needs a GROUP BY query; this is a single {what}.")
    return drawing.drawn(answer)


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


def _write(out: Path, text: StringIO, *, overwrite: bool, private: str = "") -> None:
    """Write a file that appears only when complete; ``private`` names one for its owner alone."""
    from reconpriv.writing.file import whole_file

    with whole_file(out, overwrite=overwrite, private=private) as work:
        work.write_text(text.getvalue(), encoding="utf-8", newline="")


def info(release: Path = opt.RELEASE) -> Any:
    """Explain a release: what is exact, what is estimated, and how."""
    from reconpriv.show.results.release import info_document

    opened = open_with_warnings(release)
    return Printed(opened.info(), lambda: info_document(opened))


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
) -> Any:
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
    what = "Groups" if groups else "Margins" if margins else "Records"
    found: dict[str, Any] = {"release": str(release), "file": str(file)}
    text = f"{what} written to {shown_path(file)}."
    if scripted:
        found["script"] = str(script_path(file))
        text += f"\n{shown_path(script_path(file))} shows how to count in it."
    return Printed(found | {"notes": list(notes)}, text)


def report(
    release: Path = opt.RELEASE,
    out: Path = option("-o, --out FILE", "The HTML file to write.", Path("report.html")),
    overwrite: bool = opt.OVERWRITE,
) -> Any:
    """Write a page for analysts: what is exact, how far off the rest is, how to query it.

    One HTML file, made from the release alone, so it may be published with the release.
    """
    from reconpriv.writing.file import check_file

    check_file(out, overwrite=overwrite)
    open_with_warnings(release).report(out, overwrite=overwrite)
    found = {"release": str(release), "file": str(out)}
    return Printed(found, f"Report written to {shown_path(out)}.")


@taking(left_out=ENGINE)
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
) -> Any:
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
    with contextlib.closing(table.open()) as opened:
        pool = opened.workload(
            queries=queries,
            min_selectivity=min_selectivity,
            max_attributes=max_attributes,
            seed=seed,
        )
    found: dict[str, Any] = {
        "queries": len(pool),
        "candidates": pool.candidates,
        "records": pool.records,
    }
    if release is not None:
        measured = open_with_warnings(release)
        found["mean_relative_error"] = measured.workload_error(pool, estimator=estimator)
    if out is not None:
        from reconpriv.ask.workload import write_workload

        text = StringIO()
        write_workload(text, pool)
        _write(out, text, overwrite=overwrite, private="a workload")
        found["file"] = str(out)
    shown = ((n, f"{x:.4f}" if isinstance(x, float) else x) for n, x in found.items())
    return Printed(found, "\n".join(f"{name.replace('_', ' '):22}{x}" for name, x in shown))


@taking()
def crosstab(
    release: Path = opt.RELEASE,
    rows: str = argument("ROWS", "The column, or columns A,B,…, down the side."),
    columns: str | None = argument("COLUMN", "The column across the top.", None),
    where: str | None = option("--where SQL", "A condition, to tabulate only some records."),
    shares: str | None = option(
        "--shares row|column|all",
        "Shares of the row, the column or the whole table instead of counts.",
    ),
    totals: bool = option("--totals", "Add totals by row, by column and of everything.", False),
    widest: str | None = option(
        "--widest LIMIT",
        "Flag wider intervals: a number of records, or 20% of the estimate; of shares, 5% means"
        " percentage points.",
    ),
    *,
    asked: opt.AnswerOptions,
    drawing: opt.ChartOptions,
    memory: str | None = opt.MEMORY,
) -> Any:
    """Tabulate columns of the original table, with intervals: counts or shares, and totals."""
    names = opt.split_names(rows)
    if not names:
        raise PolicyError("ROWS is empty.", hint="Name a column.")
    drawing.check()
    names += [] if columns is None else [columns]
    opened = open_with_warnings(release, memory)
    return drawing.drawn(
        opened.crosstab(names, where, shares=shares, totals=totals, widest=widest, **vars(asked))
    )


def chi_square(
    release: Path = opt.RELEASE,
    columns: str = argument("A,B,…", "Public columns, tested jointly."),
    where: str | None = opt.WHERE,
    margins: bool = opt.MARGINS,
    memory: str | None = opt.MEMORY,
) -> Any:
    """Test whether the sensitive column depends on public ones, allowing for the randomisation."""
    opened = open_with_warnings(release, memory)
    return opened.chi_square(opt.split_names(columns), where, margins=margins)


def learn(
    release: Path = opt.RELEASE,
    target: str | None = option(
        "--target COLUMN", "The column to predict; by default the sensitive one."
    ),
    features: opt.Texts = option(
        "--features A,B,…", "The columns to predict from; by default all others.", repeatable=True
    ),
    test: str | None = option(
        "--test TABLE", "A file of records to predict, with their true values."
    ),
    where: str | None = opt.WHERE,
    alpha: float = option("--alpha", "Laplace smoothing, in records.", 1.0),
    margins: bool = opt.MARGINS,
    memory: str | None = opt.MEMORY,
) -> Any:
    """Train naive Bayes on reconstructed distributions; --json prints the whole model."""
    from reconpriv.learning.evaluate import learn as run

    chosen = opt.listed_names("--features", features)
    opened = open_with_warnings(release, memory)
    return run(opened, target, chosen, where=where, alpha=alpha, test=test, margins=margins)


def _merged(option: str, texts: opt.Texts) -> dict[str, list[str]]:
    merged = opt.split_assignments(option, texts, "Write NAME=VALUE,VALUE.")
    return {name: opt.split_names(values) for name, values in merged.items()}


@dataclass(frozen=True)
class RegressionOptions:
    """What both regressions take; each field is an option."""

    features: list[str] = shared(
        "--features A,B,…",
        "The columns that explain; C(age) takes the values of a number as categories.",
        REQUIRED,
        repeatable=True,
        parse=opt.listed_names,
    )
    where: str | None = shared(opt.WHERE)
    merge: opt.Texts = shared(
        "--merge NAME=VALUE,…",
        "Take several sensitive values as one with a new name; repeatable.",
        parse=_merged,
    )
    reference: opt.Texts = shared(
        "--reference COLUMN=VALUE",
        "Compare the values of a column with this one instead of the most frequent; repeatable.",
        parse=partial(opt.split_assignments, how="Write COLUMN=VALUE."),
    )
    confidence: float = shared(opt.CONFIDENCE)
    margins: bool = shared(opt.MARGINS)


@taking()
def logistic(
    release: Path = opt.RELEASE,
    target: list[str] = option(
        "--target VALUE",
        "A sensitive value against all others (repeat it for a set of them), or the sensitive"
        " column for a multinomial model.",
        REQUIRED,
    ),
    *,
    options: RegressionOptions,
    drawing: opt.ChartOptions,
    memory: str | None = opt.MEMORY,
) -> Any:
    """Fit the logistic regression of the sensitive column that the original table would have."""
    asked = arguments(options)
    drawing.check()
    opened = open_with_warnings(release, memory)
    return drawing.drawn(opened.logistic(target[0] if len(target) == 1 else target, **asked))


@taking()
def linear(
    release: Path = opt.RELEASE,
    outcome: str = option("--outcome COLUMN", "The public number to explain.", REQUIRED),
    *,
    options: RegressionOptions,
    drawing: opt.ChartOptions,
    memory: str | None = opt.MEMORY,
) -> Any:
    """Fit the linear regression of a public number that the original table would have."""
    asked = arguments(options)
    drawing.check()
    return drawing.drawn(open_with_warnings(release, memory).linear(outcome, **asked))
