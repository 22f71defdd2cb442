"""The results beside the paper's statements: a Markdown page and a self-contained HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path

from reconpriv._version import __version__
from reconpriv.research.findings import Finding
from reconpriv.research.results import Result, Row

PAGE_TITLE = "The paper's empirical study, re-run"

_TITLES = {
    "distribution": "Figure 1: distributions",
    "violations": "Figures 2 and 4: violating micro groups",
    "error": "Figures 3 and 5: relative error of count queries",
    "dp-tables": "Tables 4 and 5: the ratio attack on differentially private answers",
}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0;font-size:.92rem}
td,th{border-bottom:1px solid #ddd;padding:.35rem .7rem;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
svg{max-width:100%;height:auto} .holds{color:#00664d;font-weight:600}
.part{color:#9a4a00;font-weight:600} .fails{color:#a00;font-weight:600}
@media(prefers-color-scheme:dark){body{background:#fff}}
"""
_CLASSES = {"holds": "holds", "holds in part": "part", "does not hold": "fails"}


def write_pages(
    folder: Path, results: dict[str, Result], findings: list[Finding], facts: list[str]
) -> list[Path]:
    """Write experiments.md and index.html."""
    markdown, html = folder / "experiments.md", folder / "index.html"
    markdown.write_text(_markdown(folder, results, findings, facts), encoding="utf-8")
    html.write_text(_html(folder, results, findings, facts), encoding="utf-8")
    return [markdown, html]


def _figures(folder: Path, name: str) -> list[Path]:
    beginnings = {
        "distribution": ("figure-1",),
        "violations": ("figure-2", "figure-4"),
        "error": ("figure-3", "figure-5"),
        "dp-tables": ("tables-4-5",),
    }
    return [path for start in beginnings[name] for path in sorted(folder.glob(f"{start}*.svg"))]


def _markdown(
    folder: Path, results: dict[str, Result], findings: list[Finding], facts: list[str]
) -> str:
    lines = [f"# {PAGE_TITLE}", ""]
    lines += [f"- {fact}" for fact in facts]
    lines += ["", "## What holds", "", "| the paper says | verdict | what we measured |"]
    lines += ["|---|---|---|"]
    for f in findings:
        # |D| would end a cell of the table.
        cells = (text.replace("|", "\\|") for text in (f.statement, f.evidence))
        lines.append("| {} | **{verdict}** | {} |".format(*cells, verdict=f.verdict))
    for name, result in results.items():
        lines += ["", f"## {_TITLES[name]}", ""]
        lines += [f"![{path.stem}]({path.name})\n" for path in _figures(folder, name)]
        lines += [f"Rows: [{name}.csv]({name}.csv)."]
        if name == "dp-tables":
            for base in ("EDU", "OCC"):
                lines += ["", *_dp_markdown(result, base)]
    return "\n".join(lines) + "\n"


def _dp_table(result: Result, base: str) -> tuple[list[str], list[list[str]]]:
    """One row a group, for each λ, ε and side the exact probability in percent."""
    columns = [(p, e, s) for p in (0.1, 0.05) for e in (0.2, 0.3) for s in ("above", "below")]
    head = ["groups", "#", "size", "f in g", "f in D"]
    head += [f"λ={p:g} ε={e:g} {'>' if s == 'above' else '<'}" for p, e, s in columns]
    rows: list[list[str]] = []
    for source in ("paper", "ours"):
        picked = result.select(base=base, source=source)
        for number in sorted({row["group"] for row in picked}):
            mine = [row for row in picked if row["group"] == number]
            first = mine[0]
            cells = [source, str(number), str(first["size"]), f"{first['frequency']:.2f}"]
            cells += [f"{first['frequency_in_table']:.3f}"]
            cells += [_dp_cell(mine, *column) for column in columns]
            rows.append(cells)
    return head, rows


def _dp_cell(rows: list[Row], privacy: float, epsilon: float, side: str) -> str:
    row = next(
        r for r in rows if r["privacy"] == privacy and r["epsilon"] == epsilon and r["side"] == side
    )
    printed = f" ({row['printed']})" if row["printed"] != "" else ""
    return f"{100 * row['exact']:.1f}{printed}"


def _dp_markdown(result: Result, base: str) -> list[str]:
    head, rows = _dp_table(result, base)
    lines = [
        f"{base}: exact probability of each tail in percent, the paper's count of 100 in brackets.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _html(
    folder: Path, results: dict[str, Result], findings: list[Finding], facts: list[str]
) -> str:
    parts = [f"<h1>{PAGE_TITLE}</h1>", "<ul>"]
    parts += [f"<li>{escape(fact)}</li>" for fact in facts]
    parts += ["</ul><h2>What holds</h2><table><thead><tr><th>the paper says</th><th>verdict</th>"]
    parts += ["<th>what we measured</th></tr></thead><tbody>"]
    for f in findings:
        style = _CLASSES.get(f.verdict, "")
        parts += [
            f"<tr><td>{escape(f.statement)}</td><td class='{style}'>{escape(f.verdict)}</td>"
            f"<td>{escape(f.evidence)}</td></tr>"
        ]
    parts += ["</tbody></table>"]
    for name, result in results.items():
        parts += [f"<h2>{escape(_TITLES[name])}</h2>"]
        for path in _figures(folder, name):
            svg = path.read_text(encoding="utf-8")
            parts += ["<figure>", svg[svg.index("<svg") :], "</figure>"]
        if name == "dp-tables":
            parts += [_dp_html(result, base) for base in ("EDU", "OCC")]
    body = "\n".join(parts)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>reconpriv {__version__}: the study</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _dp_html(result: Result, base: str) -> str:
    head, rows = _dp_table(result, base)
    cells = "".join(
        "<tr>" + "".join(f"<td class='n'>{escape(c)}</td>" for c in row) + "</tr>" for row in rows
    )
    heads = "".join(f"<th>{escape(h)}</th>" for h in head)
    return (
        f"<p>{base}: exact probability of each tail in percent, the paper's count of 100 in"
        f" brackets.</p><table><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"
    )
