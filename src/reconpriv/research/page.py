"""The results next to the paper's statements: a Markdown page and a self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from reconpriv._version import __version__
from reconpriv.research.data import BASES
from reconpriv.research.dp_tables import COLUMNS
from reconpriv.research.experiments import EXPERIMENTS
from reconpriv.research.findings import Finding
from reconpriv.research.results import Result, Row
from reconpriv.show import markup
from reconpriv.show.charts import palette
from reconpriv.show.markup import Html, tag

PAGE_TITLE = "The paper's empirical study, re-run"

_STYLE = f"""
body{{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222;
background:#fff}}
table{{border-collapse:collapse;margin:1rem 0;font-size:.92rem}}
td,th{{border-bottom:1px solid #ddd;padding:.35rem .7rem;text-align:left;vertical-align:top}}
.n{{text-align:right;font-variant-numeric:tabular-nums}}
figure{{margin:1rem 0}} svg{{max-width:100%;height:auto}} b{{font-weight:600}}
.holds{{color:{palette.GOOD}}} .part{{color:{palette.FAIR}}} .fails{{color:{palette.BAD}}}
"""
_CLASSES = {"holds": "holds", "holds in part": "part", "does not hold": "fails"}
_BELOW = "exact probability of each tail in percent, the paper's count of 100 in brackets."


def write_pages(
    folder: Path,
    results: dict[str, Result],
    drawn: dict[str, list[Path]],
    findings: list[Finding],
    facts: list[str],
) -> list[Path]:
    """Write experiments.md and index.html; ``drawn`` are the figures of each experiment."""
    pictures = {
        name: sorted(path for path in paths if path.suffix == ".svg")
        for name, paths in drawn.items()
    }
    markdown, html = folder / "experiments.md", folder / "index.html"
    markdown.write_text(_markdown(pictures, results, findings, facts), encoding="utf-8")
    html.write_text(_html(pictures, results, findings, facts), encoding="utf-8")
    return [markdown, html]


def _markdown(
    pictures: dict[str, list[Path]],
    results: dict[str, Result],
    findings: list[Finding],
    facts: list[str],
) -> str:
    lines = [f"# {PAGE_TITLE}", "", *(f"- {fact}" for fact in facts)]
    lines += ["", "## What holds", "", "| the paper says | verdict | what we measured |"]
    lines += ["|---|---|---|"]
    for f in findings:
        # |D| would end a table cell.
        cells = (text.replace("|", "\\|") for text in (f.statement, f.evidence))
        lines.append("| {} | **{verdict}** | {} |".format(*cells, verdict=f.verdict))
    for name, result in results.items():
        lines += ["", f"## {EXPERIMENTS[name].heading}", ""]
        lines += [f"![{path.stem}]({path.name})\n" for path in pictures[name]]
        lines += [f"Rows: [{name}.csv]({name}.csv)."]
        for base in BASES if name == "dp-tables" else ():
            head, rows = _dp_table(result, base)
            lines += ["", f"{base}: {_BELOW}", ""]
            lines += [f"| {' | '.join(row)} |" for row in (head, *rows)]
            lines.insert(len(lines) - len(rows), "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def _dp_table(result: Result, base: str) -> tuple[list[str], list[list[str]]]:
    """One row per group, with the exact probability in percent for each λ, ε and side."""
    head = ["groups", "#", "size", "f in g", "f in D"]
    head += [f"λ={p:g} ε={e:g} {'>' if s == 'above' else '<'}" for p, e, s in COLUMNS]
    rows: list[list[str]] = []
    for source in ("paper", "ours"):
        picked = result.select(base=base, source=source)
        for number in sorted({row["group"] for row in picked}):
            mine = [row for row in picked if row["group"] == number]
            cells = {(row["privacy"], row["epsilon"], row["side"]): _dp_cell(row) for row in mine}
            first = mine[0]
            known = [source, str(number), str(first["size"]), f"{first['frequency']:.2f}"]
            known += [f"{first['frequency_in_table']:.3f}"]
            rows.append([*known, *(cells[column] for column in COLUMNS)])
    return head, rows


def _dp_cell(row: Row) -> str:
    printed = f" ({row['printed']})" if row["printed"] != "" else ""
    return f"{100 * row['exact']:.1f}{printed}"


def _html(
    pictures: dict[str, list[Path]],
    results: dict[str, Result],
    findings: list[Finding],
    facts: list[str],
) -> str:
    rows = [
        (f.statement, tag("b", f.verdict, class_=_CLASSES.get(f.verdict)), f.evidence)
        for f in findings
    ]
    return markup.document(
        f"reconpriv {__version__}: the study",
        tag("h1", PAGE_TITLE),
        tag("ul", [tag("li", markup.words(fact)) for fact in facts]),
        tag("h2", "What holds"),
        markup.table(("the paper says", "verdict", "what we measured"), rows),
        [_experiment(name, result, pictures[name]) for name, result in results.items()],
        style=_STYLE,
    )


def _experiment(name: str, result: Result, pictures: list[Path]) -> list[Html]:
    parts = [tag("h2", EXPERIMENTS[name].heading)]
    parts += [tag("figure", Html(path.read_text(encoding="utf-8"))) for path in pictures]
    for base in BASES if name == "dp-tables" else ():
        head, rows = _dp_table(result, base)
        table = markup.table(head, rows, [{"class_": "n"}] * len(head))
        parts += [tag("p", f"{base}: {_BELOW}"), table]
    return parts
