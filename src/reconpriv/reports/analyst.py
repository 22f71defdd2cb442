"""The analysts' report: what a release is and how to query it. Derived from the release alone."""

from __future__ import annotations

import shlex
from keyword import iskeyword
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv._version import __version__
from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import IMPOSSIBLE
from reconpriv.answers.tables import EstimateTable, distinct_remarks
from reconpriv.ask.ordering import first_for_display
from reconpriv.ask.sql.text import written_name
from reconpriv.auditing.single_records import K
from reconpriv.columns.schema import Value, json_value
from reconpriv.messages.numbers import label, percent
from reconpriv.messages.remedies import plain_words, worded
from reconpriv.reports import charts
from reconpriv.reports.accuracy import ErrorBand, error_bands
from reconpriv.reports.page import PROMISED, Section, note, page, promised
from reconpriv.show.charts.drawing import browser_scripts
from reconpriv.show.document import (
    Card,
    Cards,
    Facts,
    Field,
    Grid,
    Headline,
    Paragraph,
    Part,
    Plot,
    Snippet,
    figure,
    number,
)
from reconpriv.show.results.release import noise_reach, privacy_words, reading_words, record_words
from reconpriv.writing.file import check_file, whole_file

if TYPE_CHECKING:
    from reconpriv.release.release import Release

# Words that SQL would not accept as a column; quoting one too many does no harm.
_VALUES = 8
# True wherever the reader got reconpriv from: it is not on any package index.
_INSTALL = (
    "You need Python 3.11 or newer and reconpriv, which is not on a package index: ask the"
    f" publisher for its wheel, then run `pip install './reconpriv-{__version__}-py3-none-any.whl"
    "[query]'`; or for its source folder, then run `pip install '.[query]'` in it."
)
_BARS = 60


def write_analyst(release: Release, path: Path, *, overwrite: bool = False) -> None:
    """Write the report; it may be published with the release."""
    check_file(path, overwrite=overwrite)
    browser_scripts()
    html = analyst_html(release)
    with whole_file(path, overwrite=overwrite) as work:
        work.write_text(html, encoding="utf-8")


def analyst_html(release: Release) -> str:
    """The report as one HTML file; the same release gives the same bytes."""
    info = release.info()
    answerer = release.answerer
    bands = error_bands(answerer)
    lead = Paragraph(
        f"{info['records']:,} records with one randomised column, {info['sensitive']}. Counts can"
        " be estimated from it, each with an interval; the value in a single record may be a random"
        " one.",
        "lead",
    )
    warnings = [Headline(worded(one, plain_words), "bad") for one in release.warnings]
    sections = [
        _summary(info, answerer, bands),
        Section("promise", PROMISED, promised(info, ("One record", record_words(info)))),
        Section("exact", "What is exact, what is estimated", [Facts(reading_words(info))]),
        _columns(answerer, info),
        *([_margins(release, info)] if "margins" in info else []),
        _errors(bands, info),
        _distribution(release, info),
        _asking(release, answerer, info),
        _parameters(info),
    ]
    return page("How to read this release", [lead, *warnings], sections, internal=False)


def _summary(info: dict[str, Any], answerer: Answerer, bands: tuple[ErrorBand, ...]) -> Section:
    cube = answerer.cube
    exact = "exact" if info["public_counts_exact"] else "nearly exact"
    what = "protection " if "protect" in info else ""
    unique, below = (cube.records == 1).sum(), cube.records[cube.records < K].sum()
    cards = [
        Card("records", f"{info['records']:,}", f"in {cube.groups:,} {what}groups"),
        Card("public columns", f"{len(info['public'])}", f"counts over them are {exact}"),
        Card("sensitive column", str(info["sensitive"]),
             f"{len(info['domain'])} values; estimated"),
        Card("unique records", f"{int(unique):,}",
             f"alone on the public columns; {int(below):,} in groups below {K}"),
        Card("kept values", f"p = {info['retention']:g}", "the rest is drawn at random"),
    ]  # fmt: skip
    if "margins" in info:
        tables = len(info["margins"]["tables"])
        shown = f"{tables} {'table' if tables == 1 else 'tables'}"
        cards.append(
            Card("margins", shown, f"of noisy counts, ±{noise_reach(info['margins']):,.0f}")
        )
    near = [band for band in bands if band.low <= 1_000 < band.high]
    if near:
        words = f"of counts of {_range(near[0])}"
        cards.append(Card("typical error", percent(near[0].median), words))
    return Section("summary", "At a glance", [Cards(cards)])


def _margins(release: Release, info: dict[str, Any]) -> Section:
    margins, sensitive = info["margins"], info["sensitive"]
    text = Paragraph(
        f"Beside the records there are margins: tables that count {sensitive} by one public column,"
        " or by a few together. Every count in them has random noise: about 95 of 100 are within"
        f" ±{noise_reach(margins):,.0f} of the truth, however large they are. They are published as"
        " drawn: a count may be below 0, and a row need not add up to its size."
    )
    used = Paragraph(
        "Estimates combine margins with the records, usually more accurately than either alone; the"
        " figures below are for both together. Each answer says how much of its precision comes"
        " from margins. To see what the records say by themselves, choose the estimator records."
    )
    rows = [(one["name"], one["rows"], one["left_out"]) for one in margins["tables"]]
    shown = Grid([Field("margin table"), number("rows"), number("rows left out")], rows)
    notes = []
    if any(left_out for *_, left_out in rows):
        notes.append(note("A row that would give a group of people away is left out."))
    script = (
        "import reconpriv as rp\n\n"
        f"release = rp.open({release.path.resolve().name!r})\n"
        "print(release.margins())  # the noisy counts, as published"
    )
    return Section("margins", "Margins", [text, used, shown, *notes, Snippet(script)])


def _columns(answerer: Answerer, info: dict[str, Any]) -> Section:
    rows = []
    for column in answerer.cells.schema.columns:
        known = answerer.known[column.name]
        named = info.get("labels", {}).get(column.name, {}).get("values", [])
        meaning = {one["value"]: f" = {one['label']}" for one in named}
        shown = ", ".join(
            label(json_value(value)) + meaning.get(json_value(value), "")
            for value in first_for_display(known, _VALUES)
        )
        more = ", …" if len(known) > _VALUES else ""
        role = "sensitive" if column.name == info["sensitive"] else "public"
        rows.append((column.name, role, column.kind.value, len(known), shown + more))
    fields = [*map(Field, ("column", "role", "type")), number("values"), Field("")]
    return Section("columns", "Columns", [Grid(fields, rows)])


def _errors(bands: tuple[ErrorBand, ...], info: dict[str, Any]) -> Section:
    title = "Expected error by answer size"
    text = Paragraph(
        "Larger counts are estimated more accurately. For counts of one sensitive value, alone or"
        " with one or two public values, this is how far off the estimate is on average, as a share"
        " of the answer. Sizes are those that the distribution of the whole table implies. Every"
        " answer comes with its own interval; trust that one."
        + (" These counts are about whole protection groups." if "protect" in info else "")
    )
    if not bands:
        return Section("errors", title, [text, Paragraph("The release is too small to say.")])
    rows = [
        {
            "answer": (band.low * band.high) ** 0.5,
            "range": _range(band),
            "low": band.tenth,
            "median": band.median,
            "high": band.ninetieth,
            "queries": band.queries,
        }
        for band in bands
    ]
    chart = Plot(
        "chart-errors",
        charts.error_chart(rows, "Expected relative error by the size of the answer"),
        "Line: the median. Band: 80% of such counts. At 100%, an estimate says nothing.",
    )
    fields = [Field("size of the answer"), number("typical error", percent),
              figure("80% lie between"), number("counts looked at")]  # fmt: skip
    body = [
        (_range(band), band.median, f"{percent(band.tenth)} and {percent(band.ninetieth)}",
         band.queries)
        for band in bands
    ]  # fmt: skip
    return Section("errors", title, [text, chart, Grid(fields, body)])


def _range(band: ErrorBand) -> str:
    return f"{_round(band.low)} to {_round(band.high)}"


def _round(number: float) -> str:
    digits = len(str(int(number))) - 1
    return f"{round(number, 1 - digits):,.0f}" if digits else f"{number:.0f}"


def _distribution(release: Release, info: dict[str, Any]) -> Section:
    title = f"{info['sensitive']} in the whole table"
    rows: EstimateTable = release.frequencies()
    order = sorted(rows, key=lambda row: -row[1].count)[:_BARS]
    total = info["records"]
    found = [
        {
            "value": label(json_value(labels[info["sensitive"]])),
            "share": estimate.count / total,
            "low": estimate.low / total,
            "high": estimate.high / total,
            "count": estimate.count,
            "low_count": estimate.low,
            "high_count": estimate.high,
        }
        for labels, estimate in order
    ]
    caption = "Estimates with 95% intervals for the counts in the original table."
    if len(rows) > _BARS:
        caption += f" The {_BARS} most frequent of {len(rows)} values."
    marks = {mark for _, one in order for mark in one.remarks if mark in IMPOSSIBLE}
    caption += "".join(f" Of some values, {mark}." for mark in sorted(marks))
    chart = Plot(
        "chart-distribution",
        charts.distribution_chart(found, title),
        caption,
        Grid([Field("value"), *(number(name, ",.0f") for name in ("estimate", "from", "to"))],
             [(r["value"], r["count"], r["low_count"], r["high_count"]) for r in found]),
    )  # fmt: skip
    said = [note(f"Note: {remark}.") for remark in distinct_remarks([one for _, one in order])]
    return Section("distribution", title, [chart, *said])


def _asking(release: Release, answerer: Answerer, info: dict[str, Any]) -> Section:
    """Commands for this very release: its columns, and values that occur in it."""
    folder = shlex.quote(f"{release.path.resolve().name}/")
    sensitive = info["sensitive"]
    cube = answerer.micro_groups
    totals = np.bincount(cube.value, weights=cube.count, minlength=len(cube.schema.domain))
    value = cube.schema.domain[int(np.argmax(totals))]
    where = f"{written_name(sensitive)} {_equals(value)}"
    parts: list[Part] = [
        Paragraph(_INSTALL),
        Paragraph("On the command line:"),
        Snippet(_query(folder, f"SELECT count(*) FROM release WHERE {where}")),
    ]
    keywords = {sensitive: value}
    if cube.codes:
        column = cube.schema.public[0].name
        common = int(np.argmax(np.bincount(cube.codes[0], weights=cube.records)))
        first = answerer.known[column][common]
        also = f"{written_name(column)} {_equals(first)} AND {where}"
        grouped = f"SELECT {written_name(column)}, count(*) FROM release WHERE {where}"
        parts += [
            Snippet(_query(folder, f"SELECT count(*) FROM release WHERE {also}")),
            Snippet(_query(folder, f"{grouped} GROUP BY {written_name(column)}")),
        ]
        keywords = {column: first, sensitive: value}
    plain = {name: json_value(v) for name, v in keywords.items()}
    script = (
        "import reconpriv as rp\n\n"
        f"release = rp.open({release.path.resolve().name!r})\n"
        f"print(release.count({_arguments(plain)}))\n"
        "print(release.frequencies())"
    )
    parts += [Paragraph("In Python:"), Snippet(script)]
    biased = (
        "Plain counts of the rows are biased for the sensitive column and come without an interval."
    )
    if info["public_counts_exact"]:
        biased = (
            "Plain counts of the rows, in a spreadsheet or in SQL, are biased for the sensitive"
            " column and come without an interval. Public columns may be counted as they are."
        )
    return Section("asking", "How to ask", [*parts, note(biased)])


def _query(folder: str, sql: str) -> str:
    return f"reconpriv query {folder} {_shell(sql)}"


def _shell(text: str) -> str:
    """Quoted for a shell; in double quotes if that is safe, as it reads better."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _arguments(pairs: dict[str, Any]) -> str:
    """Arguments of ``Release.count``; as a dictionary if a name is not a valid argument name."""
    taken = {"self", "where", "estimator", "confidence"}
    if all(n.isidentifier() and not iskeyword(n) and n not in taken for n in pairs):
        return ", ".join(f"{name}={value!r}" for name, value in pairs.items())
    if taken & set(pairs):
        return repr(" AND ".join(f"{written_name(n)} {_equals(v)}" for n, v in pairs.items()))
    return f"**{pairs!r}"


def _equals(value: Value) -> str:
    if value is None:
        return "IS NULL"
    if isinstance(value, bool):
        return f"= {'TRUE' if value else 'FALSE'}"
    if isinstance(value, int | float):
        return f"= {value}"
    return "= '" + str(json_value(value)).replace("'", "''") + "'"


def _parameters(info: dict[str, Any]) -> Section:
    rows = [
        ("method", str(info["method"])),
        ("retention p", f"{info['retention']:g}"),
        ("tolerance", f"{info['tolerance']:g}"),
        ("doubt", f"{info['doubt']:g}"),
        ("tail bound", str(info["bound"])),
        ("sampling rule", str(info["sampling"])),
        ("local differential privacy of one trial", f"ε = {info['local_dp_epsilon']:.3g}"),
        *(_margin_rows(info["margins"]) if "margins" in info else ()),
        ("made by", str(info["created_by"])),
        ("format version", str(info["format_version"])),
    ]
    return Section("parameters", "Parameters", [Facts(rows)])


def _margin_rows(margins: dict[str, Any]) -> list[tuple[str, str]]:
    level = f"{privacy_words(margins)} (ρ = {margins['rho']:g})"
    return [
        ("differential privacy of all margins", f"{level}, for {margins['neighbours']}"),
        ("noise of a count in margins", f"σ = {sqrt(margins['variance']):.4g}"),
    ]
