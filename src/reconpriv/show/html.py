"""Results as HTML for a notebook: self-contained, in the colours of the page, light or dark.

Everything that comes from a table is escaped; pictures are inline SVG in the colour of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from rich.table import Table as RichTable

from reconpriv.show.audit import audit_figures, columns_table, sizes, worst_groups
from reconpriv.show.text import attack_tables, estimate_cells, release_figures, remarks
from reconpriv.show.words import release_words

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult
    from reconpriv.core.audit import AuditReport
    from reconpriv.queries.estimate import Estimate
    from reconpriv.queries.table import EstimateTable
    from reconpriv.release.release import Release

_GOOD, _FAIR, _BAD, _BLUE = "#2e8540", "#a86a00", "#d8391f", "#2f7fd8"  # on white and on black
_WIDTH, _HEIGHT = 220, 14


def audit_html(report: AuditReport) -> str:
    """Verdict, figures, sizes as bars; the worst groups stay closed, for they are internal."""
    share = report.violating_records / max(report.records, 1)
    alone = report.single_records.unique / max(report.records, 1)
    colours = {"bad": _BAD, "fair": _FAIR, "good": _GOOD}
    parts = [
        _headline(report.sentences[0], colours[report.standing]),
        *(f"<p>{escape(sentence)}</p>" for sentence in report.sentences[1:]),
        _share_bar(share, _BAD, f"{share:.0%} of the records are in groups that are not private"),
        _share_bar(alone, _FAIR, f"{alone:.0%} of the records are unique on the public columns"),
        html_table(audit_figures(report)),
        _with_bars(sizes(report), [row[3] for row in report.size_distribution]),
    ]
    if report.columns:
        parts.append(html_table(columns_table(report)))
        parts.append(f"<p>{escape(report.columns_sentence)}</p>")
    if report.worst:
        inner = html_table(worst_groups(report))
        parts.append(f"<details><summary>Worst groups (internal)</summary>{inner}</details>")
    return _box(parts)


def release_html(release: Release) -> str:
    """What was published and how to read it."""
    words = "".join(
        f"<dt><b>{escape(name)}</b></dt><dd>{escape(text)}</dd>"
        for name, text in release_words(release.info())
    )
    return _box(
        [
            _headline(f"Release {release.place}"),
            html_table(release_figures(release)),
            *(f"<p>{escape(note)}</p>" for note in release.warnings),
            f"<details><summary>How to read it</summary><dl>{words}</dl></details>",
        ]
    )


def estimate_html(estimate: Estimate) -> str:
    """The number, its interval on a line from 0 to the records it is among, and the remarks."""
    count, interval, groups, trials = estimate_cells(estimate)
    parts = [
        f'<div><span style="font-size:1.6em;font-weight:600">{escape(count)}</span>'
        f" <span>{escape(estimate.query)}</span></div>"
    ]
    if estimate.exact:
        parts.append("<div>exact: it asks about public attributes alone</div>")
    elif interval == "whole bins":
        parts.append("<div>counted for whole bins, not for what was asked</div>")
    else:
        level = f"{100 * estimate.confidence:g} %"
        top = max(estimate.high, estimate.records, 1.0)
        parts += [
            f"<div>{level} interval for the count in the original table: <b>{escape(interval)}</b>"
            f" {_whisker(estimate.low, estimate.count, estimate.high, top)}</div>",
            f"<div>among {estimate.records:,} records, from {groups} groups and {trials}"
            " independent trials</div>",
        ]
    return _box(parts + _notes([estimate]))


def estimate_table_html(rows: EstimateTable) -> str:
    """A cross table, each row with its interval on a common scale."""
    estimates = [estimate for _, estimate in rows]
    top = max([1.0, *(estimate.high for estimate in estimates)])
    heads = "".join(
        f"<th>{escape(name)}</th>"
        for name in (*rows.by, "count", "interval", "", "groups", "trials")
    )
    body = []
    for labels, estimate in rows:
        shown = ["(missing)" if value is None else str(value) for value in labels.values()]
        count, interval, groups, trials = estimate_cells(estimate)
        picture = _whisker(estimate.low, estimate.count, estimate.high, top)
        cells = [*map(_cell, shown), _number(count), _number(interval), f"<td>{picture}</td>",
                 _number(groups), _number(trials)]  # fmt: skip
        body.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return _box([table, *_notes(estimates)])


def attack_html(result: AttackResult) -> str:
    """The verdict, the rates beside each other on one scale, and the figures."""
    rates = []
    for name in ("success", "baseline", "control"):
        rate = getattr(result, name)
        if rate is not None and rate.trials:
            colour = _BAD if name == "success" else _BLUE
            picture = _whisker(rate.low, rate.share, rate.high, 1.0, colour)
            rates.append(
                f"<tr><th>{name}</th>{_number(f'{rate.share:.1%}')}<td>{picture}</td>"
                f"{_cell(rate.what)}</tr>"
            )
    pictured = f"<table><tbody>{''.join(rates)}</tbody></table>" if rates else ""
    facts, *more = attack_tables(result)
    parts = [_headline(result.verdict), pictured, html_table(facts)]
    for table in more:
        title = escape(str(table.title or "").strip())
        parts.append(f"<details><summary>{title}</summary>{html_table(table)}</details>")
    return _box(parts)


def headed_tables(
    headline: str, colour: str, tables: Iterable[RichTable], *, before: str = "", after: str = ""
) -> str:
    """A bold line and tables below it, with what comes before and after the line."""
    shade = {"green": _GOOD, "red": _BAD}.get(colour, colour)
    first, second = (f"<p>{escape(text)}</p>" if text else "" for text in (before, after))
    return _box([first, _headline(headline, shade), second, *map(html_table, tables)])


def html_table(table: RichTable) -> str:
    """A rich table as an HTML table."""
    return _table(table, [])


def _with_bars(table: RichTable, amounts: Sequence[float]) -> str:
    """A table with a bar behind each row."""
    most = max([1, *amounts])
    return _table(table, [f"<td>{_bar(amount / most)}</td>" for amount in amounts])


def _table(table: RichTable, last: Sequence[str]) -> str:
    columns = [list(column.cells) for column in table.columns]
    title = str(table.title or "").strip()
    caption = f'<caption style="text-align:left">{escape(title)}</caption>' if title else ""
    heads = "".join(f"<th>{escape(str(column.header))}</th>" for column in table.columns)
    heads += "<th></th>" if last else ""
    right = [column.justify == "right" for column in table.columns]
    body = []
    for i, row in enumerate(zip(*columns, strict=True)):
        texts = [getattr(cell, "plain", None) or str(cell) for cell in row]
        cells = [_number(t) if r else _cell(t) for t, r in zip(texts, right, strict=True)]
        body.append(f"<tr>{''.join(cells)}{last[i] if last else ''}</tr>")
    head = f"<thead><tr>{heads}</tr></thead>" if table.show_header else ""
    note = f"<p><small>{escape(str(table.caption))}</small></p>" if table.caption else ""
    return f"<table>{caption}{head}<tbody>{''.join(body)}</tbody></table>{note}"


def _cell(text: str) -> str:
    lines = "<br>".join(escape(line) for line in text.splitlines())
    return f'<td style="text-align:left">{lines}</td>'


def _number(text: str) -> str:
    return (
        '<td style="text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums">'
        f"{escape(text)}</td>"
    )


def _box(parts: Iterable[str]) -> str:
    return f'<div class="reconpriv" style="max-width:60em">{"".join(parts)}</div>'


def _headline(text: str, colour: str = "inherit") -> str:
    return f'<p style="font-weight:600;color:{colour}">{escape(text)}</p>'


def _notes(estimates: list[Estimate]) -> list[str]:
    text = remarks(estimates)
    return (
        []
        if text is None
        else [f"<div><small>{escape(line)}</small></div>" for line in text.splitlines()]
    )


def _svg(inner: str, words: str) -> str:
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="{escape(words)}" style="vertical-align:middle">'
        f"<title>{escape(words)}</title>{inner}</svg>"
    )


def _bar(share: float, colour: str = "currentColor") -> str:
    wide = _WIDTH * share
    filled = f'<rect width="{wide:.1f}" height="{_HEIGHT}" fill="{colour}" fill-opacity="0.55"/>'
    return _svg(filled, f"{share:.0%} of the longest")


def _share_bar(share: float, colour: str, words: str) -> str:
    whole = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" fill-opacity="0.15"/>'
    part = f'<rect width="{_WIDTH * share:.1f}" height="{_HEIGHT}" fill="{colour}"/>'
    return f"<div>{_svg(whole + part, words)} <small>{escape(words)}</small></div>"


def _whisker(low: float, value: float, high: float, top: float, colour: str = _BLUE) -> str:
    """An interval with its value on a line from 0 to ``top``; what lies outside is cut off."""
    low_at, at, high_at = (_WIDTH * min(max(x / top, 0.0), 1.0) for x in (low, value, high))
    middle = _HEIGHT / 2
    axis = f'<line x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}" stroke="currentColor"'
    line = (
        f'<line x1="{low_at:.1f}" x2="{high_at:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}"'
    )
    dot_at = min(max(at, 4.0), _WIDTH - 4.0)
    return _svg(
        f'{axis} stroke-opacity="0.25"/>{line} stroke-width="4" stroke-opacity="0.6"/>'
        f'<circle cx="{dot_at:.1f}" cy="{middle}" r="4" fill="{colour}"/>',
        f"{low:,.4g} to {high:,.4g} on a line from 0 to {top:,.4g}",
    )
