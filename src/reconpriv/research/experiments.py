"""The experiments of the study: how each is run, drawn and judged, declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reconpriv.research import figures, findings
from reconpriv.research.data import Population
from reconpriv.research.dp_tables import run_dp_tables
from reconpriv.research.findings import Finding
from reconpriv.research.margins import run_margins
from reconpriv.research.results import Result, Step
from reconpriv.research.setting import StudySize
from reconpriv.research.sweeps import run_distribution, run_error, run_violations
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts.drawing import Spec


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
