"""Reports as text: the same rich tables on a terminal and in a pipe."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv._version import __version__
from reconpriv.messages.phrases import group_words
from reconpriv.show.release_words import policy_line, release_words
from reconpriv.show.rows import FittingTable

if TYPE_CHECKING:
    from reconpriv.attacks.result import AttackResult
    from reconpriv.doctor import Examination
    from reconpriv.queries.estimate import Estimate
    from reconpriv.queries.table import EstimateTable
    from reconpriv.release.release import Release
    from reconpriv.research.run import Study

_PLAIN_WIDTH = 110


def as_text(renderable: RenderableType, width: int = _PLAIN_WIDTH) -> str:
    """A rich renderable as plain text, without colour."""
    stream = StringIO()
    Console(
        file=stream, width=width, color_system=None, highlight=False, force_jupyter=False
    ).print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def pairs_table(rows: list[tuple[str, str]]) -> RichTable:
    """Names and values, without a heading."""
    table = FittingTable(show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def release_view(release: Release) -> RenderableType:
    """What was published, in a few lines."""
    return Group(Text(f"Release {release.place}\n", style="bold"), release_figures(release))


def release_figures(release: Release) -> RichTable:
    """Records, policy and, for the publisher, what was sampled."""
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
    return pairs_table(rows)


_ESTIMATE_HEADINGS = ("count", "interval", "groups", "trials")


def estimate_cells(estimate: Estimate) -> tuple[str, str, str, str]:
    """Count, interval, groups and trials of an estimate."""
    from reconpriv.queries.estimate import WHOLE_BINS  # noqa: PLC0415 - needs numpy, loaded by now

    interval = f"{estimate.low:,.1f} to {estimate.high:,.1f}"
    count = f"{estimate.count:,.1f}"
    if estimate.exact or estimate.estimator == WHOLE_BINS:
        interval = "exact" if estimate.exact else WHOLE_BINS
        count = f"{estimate.count:,.0f}"
    return count, interval, f"{estimate.groups:,}", f"{estimate.trials:,.0f}"


def remarks(estimates: list[Estimate]) -> str | None:
    """Each remark once; if it concerns only some rows, with their number."""
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
        box=None, padding=(0, 2, 0, 0), caption=remarks(estimates), caption_justify="left"
    )
    table.add_column("query", overflow="fold")
    for heading in _ESTIMATE_HEADINGS:
        table.add_column(heading, justify="right")
    for estimate in estimates:
        table.add_row(Text(estimate.query), *estimate_cells(estimate))
    return table


def estimate_table_view(rows: EstimateTable) -> RichTable:
    """A cross table, one row per combination."""
    estimates = [estimate for _, estimate in rows]
    table = RichTable(
        box=None, padding=(0, 2, 0, 0), caption=remarks(estimates), caption_justify="left"
    )
    for name in rows.by:
        table.add_column(Text(name))
    for heading in _ESTIMATE_HEADINGS:
        table.add_column(heading, justify="right")
    for labels, estimate in rows:
        shown = (Text("(missing)" if value is None else str(value)) for value in labels.values())
        table.add_row(*shown, *estimate_cells(estimate))
    return table


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
    """Which of the paper's findings hold."""
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
    return Group(*parts, *attack_tables(result))


def attack_tables(result: AttackResult) -> list[RichTable]:
    """An attack's rates and figures, its table and its worst groups."""
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
    table = FittingTable(title=title)
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(Text(name), justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(_figure(value)) for value in row.values()))
    return table


def _figure(value: Any) -> str:
    """A figure for display: three digits, thousands separated, a group by its columns."""
    if isinstance(value, dict):
        return group_words(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


_PARTS = {
    "python": "Python",
    "machine": "Machine",
    "core": "Core",
    "extra": "Extras",
    "system": "System",
    "data": "Data",
}


def doctor_view(examination: Examination) -> RenderableType:
    """What is installed and what is not, followed by the commands that would add the rest."""
    table = RichTable(box=None, padding=(0, 2, 0, 0), show_header=False)
    for overflow in ("ignore", "fold", "fold", "fold"):
        table.add_column(overflow=overflow)
    part = ""
    for check in examination.checks:
        if check.part != part:
            part = check.part
            table.add_row("", Text(f"\n{_PARTS[part]}", style="bold"), "", "")
        mark = Text("ok", style="green") if check.ok else Text("-", style="yellow")
        table.add_row(mark, Text(check.name), Text(check.found), Text(check.use, style="dim"))
    missing = [check for check in examination.checks if not check.ok and check.add]
    parts: list[RenderableType] = [Text(f"reconpriv {__version__}", style="bold"), table]
    if missing:
        parts.append(Text("\nTo add what is missing", style="bold"))
        parts += [Text(f"{check.name}: {check.add}", overflow="fold") for check in missing]
    return Group(*parts)
