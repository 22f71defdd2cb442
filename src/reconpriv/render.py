"""Reports as text and as HTML for a notebook; the same rich tables on a terminal and piped."""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.wording import policy_line, release_words

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult
    from reconpriv.audit import AuditReport
    from reconpriv.experiments.run import Study
    from reconpriv.queries.estimate import Estimate
    from reconpriv.queries.table import EstimateTable
    from reconpriv.release import Release

_PLAIN_WIDTH = 110


def as_text(renderable: RenderableType, width: int = _PLAIN_WIDTH) -> str:
    """A rich renderable as plain text, without colour."""
    stream = StringIO()
    Console(file=stream, width=width, color_system=None, highlight=False).print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def audit_text(report: AuditReport) -> str:
    """The audit as plain text."""
    return as_text(audit_view(report))


def release_text(release: Release) -> str:
    """The publisher's summary of a release as plain text."""
    return as_text(release_view(release))


def audit_view(report: AuditReport) -> RenderableType:
    """Verdict first, then the figures, the sizes and the worst groups."""
    parts: list[RenderableType] = [_verdict(report), _audit_figures(report), _sizes(report)]
    if report.worst:
        parts += [_worst_groups(report)]
    return Group(*parts)


def _verdict(report: AuditReport) -> Text:
    if report.private:
        return Text(
            "Every group is private: perturbing alone, without sampling, keeps this policy.\n",
            style="bold green",
        )
    return Text(
        f"Not private: {report.violating_groups:,} of {report.groups:,} groups, with"
        f" {report.violating_records:,} of {report.records:,} records, could be reconstructed if"
        " the table were only perturbed. `reconpriv publish` samples those groups.\n",
        style="bold red",
    )


def pairs_table(rows: list[tuple[str, str]]) -> RichTable:
    """Names and what they are, without a heading."""
    table = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def _probability(number: float) -> str:
    return "< 0.01%" if 0 <= number < 1e-4 else f"{number:.2%}"


def _audit_figures(report: AuditReport) -> RichTable:
    return pairs_table(
        [
            ("records", f"{report.records:,}"),
            ("groups", f"{report.groups:,} (public: {', '.join(report.public) or 'none'})"),
            ("sensitive", f"{report.sensitive} ({report.domain_size} values)"),
            ("policy", policy_line(report.policy.as_dict())),
            ("violating groups", f"{report.violating_groups:,}"),
            ("violating records", f"{report.violating_records:,}"),
        ]
    )


def _sizes(report: AuditReport) -> RichTable:
    table = RichTable(title="\nGroup sizes", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("records in group", "groups", "records"):
        table.add_column(heading, justify="right")
    for low, high, groups, records in report.size_distribution:
        size = str(low) if low == high else f"{low:,} to {high:,}"
        table.add_row(size, f"{groups:,}", f"{records:,}")
    return table


def _worst_groups(report: AuditReport) -> RichTable:
    table = RichTable(
        title="\nWorst groups (internal: not for release)",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        caption="size above s_g, or bound below δ: not private. exact tails: the true probability"
        " that the estimate of the most exposed value is more than ε too high / too low.",
        caption_justify="left",
    )
    table.add_column("group", overflow="fold")
    for heading in ("size", "largest f", "s_g", "private", "bound", "exact tail above", "below"):
        table.add_column(heading, justify="right")
    for verdict in report.worst:
        table.add_row(
            Text(", ".join("-" if v is None else str(v) for v in verdict.public.values())),
            f"{verdict.size:,}",
            f"{verdict.largest_frequency:.3f}",
            f"{verdict.largest_private_size:,.1f}",
            "yes" if verdict.private else "no",
            _probability(min(verdict.bound_above, verdict.bound_below)),
            _probability(verdict.upper_tail),
            _probability(verdict.lower_tail),
        )
    return table


def release_view(release: Release) -> RenderableType:
    """What was published, in a few lines."""
    summary = release.as_dict()
    policy = summary["policy"]
    rows = [
        ("records", f"{summary['records']:,}"),
        ("policy", f"{policy_line(policy)}, sample size {policy['sample_size']}"),
    ]
    if release.written is not None:
        rows += [
            ("groups", f"{summary['groups']:,}"),
            ("sampled groups", f"{summary['sampled_groups']:,}"),
            ("independent trials", f"{summary['trials']:,}"),
        ]
        if summary["unattainable_groups"]:
            rows.append(
                (
                    "kept one trial",
                    f"{summary['unattainable_groups']:,} groups in which not even one is private",
                )
            )
    if release.tables:
        rows.append(("tables", ", ".join(release.tables)))
    title = Text(f"Release {release.place}\n", style="bold")
    return Group(title, pairs_table(rows))


def audit_html(report: AuditReport) -> str:
    """The audit for a notebook."""
    colour = "#1a7f37" if report.private else "#b42318"
    return headed_tables(
        _verdict(report).plain.strip(), colour, [_audit_figures(report), _sizes(report)]
    ) + (_html_table(_worst_groups(report)) if report.worst else "")


def release_html(release: Release) -> str:
    """The summary of a release for a notebook."""
    view = release_view(release)
    assert isinstance(view, Group)
    tables = [part for part in view.renderables if isinstance(part, RichTable)]
    return headed_tables(f"Release {release.place}", "inherit", tables)


def headed_tables(headline: str, colour: str, tables: list[RichTable]) -> str:
    """A bold line and tables below it, for a notebook."""
    head = f'<p style="font-weight:600;color:{colour}">{escape(headline)}</p>'
    return head + "".join(_html_table(table) for table in tables)


def _html_table(table: RichTable) -> str:
    """A rich table as an HTML table."""
    columns = [list(column.cells) for column in table.columns]
    title = str(table.title or "").strip()
    caption = f'<caption style="text-align:left">{escape(title)}</caption>' if title else ""
    heads = "".join(f"<th>{escape(str(column.header))}</th>" for column in table.columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(getattr(c, 'plain', None) or str(c))}</td>" for c in row)
        + "</tr>"
        for row in zip(*columns, strict=True)
    )
    head = f"<thead><tr>{heads}</tr></thead>" if table.show_header else ""
    note = f"<p><small>{escape(str(table.caption))}</small></p>" if table.caption else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{note}"


_ESTIMATE_HEADINGS = ("count", "interval", "groups", "trials")


def _estimate_cells(estimate: Estimate) -> tuple[str, str, str, str]:
    interval = "exact" if estimate.exact else f"{estimate.low:,.1f} to {estimate.high:,.1f}"
    count = f"{estimate.count:,.0f}" if estimate.exact else f"{estimate.count:,.1f}"
    return count, interval, f"{estimate.groups:,}", f"{estimate.trials:,.0f}"


def _remarks(estimates: list[Estimate]) -> str | None:
    """Each remark once; those that concern some rows only say how many."""
    found: dict[str, int] = {}
    for estimate in estimates:
        for remark in estimate.remarks:
            found[remark] = found.get(remark, 0) + 1
    lines = []
    for remark, times in found.items():
        share = "" if times == len(estimates) else f" ({times} of {len(estimates)} rows)"
        lines.append(f"note: {remark}{share}.")
    return "\n".join(lines) or None


def estimates_view(estimates: list[Estimate]) -> RichTable:
    """Estimates with their queries."""
    table = RichTable(
        box=None, padding=(0, 2, 0, 0), caption=_remarks(estimates), caption_justify="left"
    )
    table.add_column("query", overflow="fold")
    for heading in _ESTIMATE_HEADINGS:
        table.add_column(heading, justify="right")
    for estimate in estimates:
        table.add_row(Text(estimate.query), *_estimate_cells(estimate))
    return table


def estimate_table_view(rows: EstimateTable) -> RichTable:
    """A cross table, one row a combination."""
    estimates = [estimate for _, estimate in rows]
    table = RichTable(
        box=None, padding=(0, 2, 0, 0), caption=_remarks(estimates), caption_justify="left"
    )
    for name in rows.by:
        table.add_column(Text(name))
    for heading in _ESTIMATE_HEADINGS:
        table.add_column(heading, justify="right")
    for labels, estimate in rows:
        shown = (Text("(missing)" if value is None else str(value)) for value in labels.values())
        table.add_row(*shown, *_estimate_cells(estimate))
    return table


def estimates_html(estimates: list[Estimate]) -> str:
    """Estimates for a notebook."""
    return _html_table(estimates_view(estimates))


def estimate_table_html(rows: EstimateTable) -> str:
    """A cross table for a notebook."""
    return _html_table(estimate_table_view(rows))


def info_view(release: Release) -> RenderableType:
    """A release in words that an analyst understands."""
    facts = release.info()
    table = RichTable(show_header=False, box=None, padding=(0, 2, 1, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in release_words(facts):
        table.add_row(name, Text(text))
    return Group(Text(f"{facts['records']:,} records, {facts['created_by']}\n"), table)


def findings_view(study: Study) -> RenderableType:
    """What of the paper's study holds."""
    table = RichTable(box=None, padding=(0, 2, 1, 0))
    table.add_column("the paper says", overflow="fold", ratio=4)
    table.add_column("verdict")
    table.add_column("measured", overflow="fold", ratio=5)
    colours = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}
    for finding in study.findings:
        verdict = Text(finding.verdict, style=colours.get(finding.verdict, ""))
        table.add_row(Text(finding.statement), verdict, Text(finding.evidence))
    done = f"{len(study.files)} files in {study.folder}, {study.seconds:.0f} s; open index.html"
    return Group(table, Text(done))


def attack_view(result: AttackResult) -> RenderableType:
    """An attack: verdict first, then its rates, figures, table and worst groups."""
    parts: list[RenderableType] = [Text(f"{result.verdict}\n", style="bold")]
    return Group(*parts, *_attack_tables(result))


def attack_html(result: AttackResult) -> str:
    """An attack for a notebook."""
    return headed_tables(result.verdict, "inherit", _attack_tables(result))


def _attack_tables(result: AttackResult) -> list[RichTable]:
    rows = [("attack", result.name), ("adversary knew", result.knew)]
    for name in ("success", "baseline", "control"):
        rate = getattr(result, name)
        if rate is not None:
            rows.append((name, f"{rate}: {rate.what}"))
    rows += [(name, _figure(value)) for name, value in result.figures.items()]
    tables = [pairs_table(rows)]
    if result.table:
        tables.append(_rows_table("\nFigures", result.table))
    if result.worst:
        tables.append(_rows_table("\nWorst groups (internal: not for release)", result.worst))
    return tables


def _rows_table(title: str, rows: tuple[dict[str, Any], ...]) -> RichTable:
    table = RichTable(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_figure(value)) for value in row.values()))
    return table


def _figure(value: Any) -> str:
    """A figure for reading: three digits, thousands set apart, a group by its values."""
    if isinstance(value, dict):
        return ", ".join("-" if v is None else str(v) for v in value.values())
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
