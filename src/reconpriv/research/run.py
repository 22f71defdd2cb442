"""The study: its experiments, run one by one or all; results, figures and page go into one folder.

The page puts the results next to the paper's statements, as Markdown and as self-contained HTML.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconpriv._version import __version__
from reconpriv.attacks.ratio import require_opendp
from reconpriv.errors import InputError
from reconpriv.research import figures, findings
from reconpriv.research.data import BASES, Population, census_population, own_population
from reconpriv.research.dp_tables import COLUMNS, run_dp_tables
from reconpriv.research.findings import Finding
from reconpriv.research.margins import run_margins
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import DEFAULT, FAST, FULL, StudySize
from reconpriv.research.sweeps import run_distribution, run_error, run_violations
from reconpriv.show import markup
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import Spec
from reconpriv.show.markup import Html, tag
from reconpriv.writing.folder import Replaceable, check_folder, new_folder


@dataclass(frozen=True)
class Experiment:
    """An experiment by name, with its heading and how many steps it reports, for a bar."""

    name: str
    heading: str
    steps: int
    run: Callable[[Population, StudySize, Step], Result]
    figures: Callable[[Result, str], dict[str, Spec]]
    findings: Callable[[Result], Iterator[tuple[str, str, str]]]

    def draw(self, result: Result, folder: Path, label: str) -> list[Path]:
        """Draw its figures as SVG and PNG; ``label`` describes the data."""
        charts.altair("experiments")
        written = []
        for name, figure in self.figures(result, label).items():
            paths = [folder / f"{name}.{ending}" for ending in ("svg", "png")]
            charts.save(figure, *paths)
            written += paths
        return written


_EVERY = (
    Experiment("distribution", "Figure 1: distributions", 2,
               run_distribution, figures.distribution, findings.distribution),
    Experiment("violations", "Figures 2 and 4: violating micro groups", 40,
               run_violations, figures.violations, findings.violations),
    Experiment("error", "Figures 3 and 5: relative error of count queries", 40,
               run_error, figures.error, findings.error),
    Experiment("dp-tables",
               "Tables 4 and 5: the ratio attack on differentially private answers", 28,
               run_dp_tables, figures.dp_tables, findings.dp_tables),
    Experiment("margins", "Figures 6 and 7, not in the paper: margins", 15,
               run_margins, figures.margins, findings.margins),
)  # fmt: skip
EXPERIMENTS = {one.name: one for one in _EVERY}


def judge(results: dict[str, Result]) -> list[Finding]:
    """Every statement that the available results bear on."""
    return [
        Finding(*found, experiment=name)
        for name, one in EXPERIMENTS.items()
        if name in results
        for found in one.findings(results[name])
    ]


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

STEPS = {name: one.steps for name, one in EXPERIMENTS.items()}
NAMES = tuple(STEPS)


@dataclass(frozen=True)
class Study:
    """What a run wrote and found."""

    folder: Path
    results: dict[str, Result]
    findings: list[Finding]
    files: list[Path]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The findings, and where everything is."""
        return {
            "out": str(self.folder),
            "seconds": round(self.seconds, 1),
            "findings": [
                {"statement": one.statement, "verdict": one.verdict, "evidence": one.evidence}
                for one in self.findings
            ],
            "files": [path.name for path in self.files],
        }


def run_study(
    names: Sequence[str],
    folder: Path,
    *,
    fast: bool = False,
    data: Path | None = None,
    overwrite: bool = False,
    step: Step = lambda _: None,
) -> Study:
    """Run the named experiments (or ``all``) and write CSV, figures and pages.

    The folder appears only when it is complete.
    """
    wanted = _wanted(names)
    effort = FAST if fast else FULL
    earlier = Replaceable(is_study, "an earlier run of the study")
    check_folder(folder, overwrite=overwrite, earlier=earlier)
    charts.altair("experiments")
    if "dp-tables" in wanted:
        require_opendp()
    begun = time.monotonic()
    population = own_population(data) if data is not None else census_population()
    results: dict[str, Result] = {}
    drawn: dict[str, list[Path]] = {}
    with new_folder(folder, overwrite=overwrite, earlier=earlier) as work:
        files: list[Path] = []
        for name in wanted:
            one = EXPERIMENTS[name]
            results[name] = one.run(population, effort, step)
            drawn[name] = one.draw(results[name], work, population.label.split(",")[0])
            files += [results[name].write(work), *drawn[name]]
        found = judge(results)
        seconds = time.monotonic() - begun
        files += write_pages(work, results, drawn, found, _facts(population, effort, wanted))
    return Study(folder, results, found, [folder / path.name for path in files], seconds)


def is_study(folder: Path) -> bool:
    """True if a folder was written by a run of the study."""
    page = folder / "index.html"
    return page.is_file() and PAGE_TITLE in page.read_text(encoding="utf-8", errors="replace")


def _wanted(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in (*NAMES, "all"):
            raise InputError(
                f"There is no experiment called {name!r}.",
                hint=f"Choose from: {', '.join(('all', *NAMES))}.",
            )
    return list(NAMES) if "all" in names else [name for name in NAMES if name in names]


def _facts(population: Population, effort: StudySize, names: list[str]) -> list[str]:
    size = min(DEFAULT.records, population.largest)
    command = "all" if list(NAMES) == names else " ".join(names)
    return [
        f"Data: {population.label}; samples of up to {population.largest:,} records.",
        f"Effort: {effort.keys} keys, {effort.queries:,} queries, {effort.trials:,} noisy draws"
        + (" (a fast run: the shape, not the last digit)." if effort.fast else "."),
        f"Defaults: p = 0.5, ε = 0.5, δ = 0.3, |D| = {size:,}, simplified Chernoff bound. Groups in"
        " which not even one trial is private keep one.",
        "Names: ε is the tolerance of a policy, δ its doubt, |D| the number of records. UP is"
        " perturbation alone (sampling rule `none`), RP the paper's algorithm (`paper`). In EDU,"
        " Education is sensitive, in OCC, Occupation.",
        f"Made with reconpriv {__version__}: `reconpriv experiment {command}`.",
    ]


# --- the page ------------------------------------------------------------------------------------


def write_pages(
    folder: Path,
    results: dict[str, Result],
    drawn: dict[str, list[Path]],
    found: list[Finding],
    facts: list[str],
) -> list[Path]:
    """Write experiments.md and index.html; ``drawn`` are the figures of each experiment."""
    pictures = {
        name: sorted(path for path in paths if path.suffix == ".svg")
        for name, paths in drawn.items()
    }
    markdown, html = folder / "experiments.md", folder / "index.html"
    markdown.write_text(_markdown(pictures, results, found, facts), encoding="utf-8")
    html.write_text(_html(pictures, results, found, facts), encoding="utf-8")
    return [markdown, html]


def _markdown(
    pictures: dict[str, list[Path]],
    results: dict[str, Result],
    found: list[Finding],
    facts: list[str],
) -> str:
    lines = [f"# {PAGE_TITLE}", "", *(f"- {fact}" for fact in facts)]
    lines += ["", "## What holds", "", "| the paper says | verdict | what we measured |"]
    lines += ["|---|---|---|"]
    for f in found:
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
    found: list[Finding],
    facts: list[str],
) -> str:
    rows = [
        (f.statement, tag("b", f.verdict, class_=_CLASSES.get(f.verdict)), f.evidence)
        for f in found
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
