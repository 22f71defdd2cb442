"""Results as HTML for a notebook: self-contained, in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table as RichTable

from reconpriv.messages.numbers import label, percent
from reconpriv.show import markup, palette
from reconpriv.show.audit import audit_figures, columns_table, sizes, worst_groups
from reconpriv.show.markup import Html, join, lines, tag, words
from reconpriv.show.release_words import release_words
from reconpriv.show.text import attack_tables, estimate_cells, release_figures, remarks

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult
    from reconpriv.core.audit import AuditReport
    from reconpriv.queries.estimate import Estimate
    from reconpriv.queries.table import EstimateTable
    from reconpriv.release.release import Release

_TONES = {"good": palette.GOOD, "fair": palette.FAIR, "bad": palette.BAD}
_WIDTH, _HEIGHT = 220, 14
_LEFT = {"style": "text-align:left"}
_RIGHT = {"style": "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"}


def audit_html(report: AuditReport) -> str:
    """Verdict, figures, sizes as bars; the worst groups are collapsed, as they are internal."""
    share = report.violating_records / max(report.records, 1)
    alone = report.single_records.unique / max(report.records, 1)
    most = max([1, *(row[3] for row in report.size_distribution)])
    return _box(
        _headline(report.sentences[0], _TONES[report.standing]),
        [tag("p", words(sentence)) for sentence in report.sentences[1:]],
        _share_bar(share, palette.VERMILION, "are in groups that are not private"),
        _share_bar(alone, palette.ORANGE, "are unique on the public columns"),
        html_table(audit_figures(report)),
        html_table(sizes(report), [_bar(row[3] / most) for row in report.size_distribution]),
        [html_table(columns_table(report)), tag("p", report.columns_sentence)]
        if report.columns else None,
        _closed("Worst groups (internal)", html_table(worst_groups(report)))
        if report.worst else None,
    )  # fmt: skip


def release_html(release: Release) -> str:
    """What was published and how to read it."""
    explained = [
        (tag("dt", tag("b", name)), tag("dd", words(text)))
        for name, text in release_words(release.info())
    ]
    return _box(
        _headline(f"Release {release.place}"),
        html_table(release_figures(release)),
        [tag("p", note) for note in release.warnings],
        _closed("How to read it", tag("dl", explained)),
    )


def estimate_html(estimate: Estimate) -> str:
    """The number, its interval on a line from 0 to the records it is among, and the remarks."""
    count, interval, groups, trials = estimate_cells(estimate)
    large = tag("span", count, style="font-size:1.6em;font-weight:600")
    parts = [tag("div", large, " ", tag("span", estimate.query))]
    if estimate.exact:
        parts.append(tag("div", "exact: it asks about public attributes alone"))
    elif interval == "whole bins":
        parts.append(tag("div", "counted for whole bins, not for what was asked"))
    else:
        level = f"{100 * estimate.confidence:g}%"
        top = max(estimate.high, estimate.records, 1.0)
        parts += [
            tag("div", f"{level} interval for the count in the original table: ",
                tag("b", interval), " ",
                _whisker(estimate.low, estimate.count, estimate.high, top)),
            tag("div", f"among {estimate.records:,} records, from {groups} groups and {trials}"
                " independent trials"),
        ]  # fmt: skip
    return _box(parts, _notes([estimate]))


def estimate_table_html(rows: EstimateTable) -> str:
    """A cross table, each row with its interval on a common scale."""
    estimates = [estimate for _, estimate in rows]
    top = max([1.0, *(estimate.high for estimate in estimates)])
    body = []
    for labels, estimate in rows:
        count, interval, *rest = estimate_cells(estimate)
        picture = _whisker(estimate.low, estimate.count, estimate.high, top)
        body.append([*map(label, labels.values()), count, interval, picture, *rest])
    head = (*rows.by, "count", "interval", "", "groups", "trials")
    columns = [*([_LEFT] * len(rows.by)), _RIGHT, _RIGHT, _LEFT, _RIGHT, _RIGHT]
    return _box(markup.table(head, body, columns), _notes(estimates))


def attack_html(result: AttackResult) -> str:
    """The verdict, the rates side by side on one scale, and the figures."""
    rates = []
    for name in ("success", "baseline", "control"):
        rate = getattr(result, name)
        if rate is not None and rate.trials:
            colour = palette.VERMILION if name == "success" else palette.BLUE
            picture = _whisker(rate.low, rate.share, rate.high, 1.0, colour)
            rates.append([tag("b", name), f"{rate.share:.1%}", picture, rate.what])
    facts, *more = attack_tables(result)
    return _box(
        _headline(result.verdict),
        markup.table((), rates, [_LEFT, _RIGHT, _LEFT, _LEFT]) if rates else None,
        html_table(facts),
        [_closed(str(table.title or "").strip(), html_table(table)) for table in more],
    )


def headed_tables(
    headline: str, colour: str, tables: Iterable[RichTable], *, before: str = "", after: str = ""
) -> str:
    """A bold line with tables below it, and what comes before and after."""
    shade = {"green": palette.GOOD, "red": palette.BAD}.get(colour, colour)
    return _box(
        tag("p", before) if before else None,
        _headline(headline, shade),
        tag("p", after) if after else None,
        map(html_table, tables),
    )


def html_table(table: RichTable, pictures: Sequence[Html] = ()) -> Html:
    """A rich table as an HTML table, with a picture at the end of each row."""
    title, note = str(table.title or "").strip(), table.caption
    columns = [_RIGHT if column.justify == "right" else _LEFT for column in table.columns]
    head = [str(column.header) for column in table.columns] if table.show_header else []
    body: list[list[Html]] = [
        [lines(getattr(cell, "plain", None) or str(cell)) for cell in row]
        for row in zip(*(column.cells for column in table.columns), strict=True)
    ]
    if pictures:
        columns, head = [*columns, _LEFT], [*head, ""]
        body = [[*row, picture] for row, picture in zip(body, pictures, strict=True)]
    caption = tag("caption", title, **_LEFT) if title else None
    return join(
        markup.table(head, body, columns, caption=caption),
        tag("p", tag("small", str(note))) if note else None,
    )


def _box(*parts: markup.Child) -> str:
    return tag("div", *parts, class_="reconpriv", style="max-width:60em")


def _closed(title: str, inner: Html) -> Html:
    return tag("details", tag("summary", title), inner)


def _headline(text: str, colour: str = "inherit") -> Html:
    return tag("p", words(text), style=f"font-weight:600;color:{colour}")


def _notes(estimates: list[Estimate]) -> list[Html]:
    text = remarks(estimates)
    found = [] if text is None else text.splitlines()
    return [tag("div", tag("small", line)) for line in found]


def _svg(said: str, *inner: Html) -> Html:
    return tag(
        "svg", tag("title", said), *inner, width=_WIDTH, height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=said,
        style="vertical-align:middle",
    )  # fmt: skip


def _rect(share: float, colour: str, opacity: float) -> Html:
    wide = f"{_WIDTH * share:.1f}"
    return tag("rect", width=wide, height=_HEIGHT, fill=colour, fill_opacity=opacity)


def _bar(share: float) -> Html:
    return _svg(f"{share:.0%} of the longest", _rect(share, palette.INK, 0.55))


def _share_bar(share: float, colour: str, are: str) -> Html:
    said = f"{percent(share)} of the records {are}"
    picture = _svg(said, _rect(1, palette.INK, 0.15), _rect(share, colour, 1))
    return tag("div", picture, " ", tag("small", said))


def _whisker(low: float, value: float, high: float, top: float, colour: str = palette.BLUE) -> Html:
    """An interval with its value on a line from 0 to ``top``, clipped to that range."""
    low_at, at, high_at = (_WIDTH * min(max(x / top, 0.0), 1.0) for x in (low, value, high))
    middle = _HEIGHT / 2

    def line(start: float, end: float, **more: object) -> Html:
        return tag("line", x1=f"{start:.1f}", x2=f"{end:.1f}", y1=middle, y2=middle, **more)

    return _svg(
        f"{low:,.4g} to {high:,.4g} on a line from 0 to {top:,.4g}",
        line(0, _WIDTH, stroke=palette.INK, stroke_opacity=0.25),
        line(low_at, high_at, stroke=colour, stroke_width=4, stroke_opacity=0.6),
        tag("circle", cx=f"{min(max(at, 4.0), _WIDTH - 4.0):.1f}", cy=middle, r=4, fill=colour),
    )
