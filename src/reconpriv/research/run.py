"""Running the study: one experiment or all; results, figures and page go into one folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconpriv._version import __version__
from reconpriv.attacks.ratio import require_opendp
from reconpriv.errors import InputError
from reconpriv.research.data import Population, census_population, own_population
from reconpriv.research.experiments import EXPERIMENTS, judge
from reconpriv.research.findings import Finding
from reconpriv.research.page import PAGE_TITLE, write_pages
from reconpriv.research.results import Result, Step
from reconpriv.research.setting import DEFAULT, FAST, FULL, StudySize
from reconpriv.show.charts import drawing as charts
from reconpriv.writing.folder import Replaceable, check_folder, new_folder

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
        findings = judge(results)
        seconds = time.monotonic() - begun
        files += write_pages(work, results, drawn, findings, _facts(population, effort, wanted))
    return Study(folder, results, findings, [folder / path.name for path in files], seconds)


def is_study(folder: Path) -> bool:
    """Whether a folder was written by a run of the study."""
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
        f"Made with reconpriv {__version__}: `reconpriv experiment {command}`.",
    ]
