"""Regression on releases of the census table: coverage of its intervals, and what naive use gives.

    python benchmarks/regression_coverage.py [KEYS]

writes docs/learning/regression-coverage.csv and docs/learning/regression.csv, which
docs/learning.md shows. About a quarter of an hour on two cores with 40 keys.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import reconpriv as rp
from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import Cube, collect
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Design
from reconpriv.learning.fits import linear_of, logistic_of
from reconpriv.learning.fitting import Options
from reconpriv.learning.regression import Regression
from reconpriv.protect.publish_cube import published_cube

COLUMNS = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")
SAMPLING_RULES = ("none", "octave", "public")
FOLDER = Path(__file__).parents[1] / "docs" / "learning"
RETENTION = 0.5
NAIVE_KEYS = 5
SCHOOL = (
    "Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade",
    "9th grade", "10th grade", "11th grade", "12th grade no diploma",
)  # fmt: skip
ASSOCIATE = ("Associates degree-academic program", "Associates degree-occup /vocational")
HIGHER = (
    "Masters degree(MA MS MEng MEd MSW MBA)", "Prof school degree (MD DDS DVM LLB JD)",
    "Doctorate degree(PhD EdD)",
)  # fmt: skip
RARE = (1, 5, 6, 7, 9, 11, 20, 21, 22, 25, 27, 40, 45, 46)
ALL = ["Age", "Gender", "Marital", "Race", "Workclass"]


@dataclass(frozen=True)
class Model:
    """A regression that is fitted to every release; a linear one explains Age."""

    name: str
    target: Any
    features: list[str]
    merge: dict[str, tuple[Any, ...]] | None = None
    reference: dict[str, Any] | None = None

    def fit(self, cube: Cube, retention: float, sampling: str) -> Regression:
        """Fit it as an analyst who believes in this retention would."""
        answerer = Answerer(cube, Design(retention, cube.schema.domain_size, sampling))
        run = linear_of if self.target is None else logistic_of
        target = "Age" if self.target is None else self.target
        options = Options(self.merge, self.reference)
        return run(answerer, answerer.select(None, {}), target, self.features, options)


MODELS = {
    "Education": (
        Model("logistic, 16 % hold it", "Bachelors degree(BA AB BS)", ALL),
        Model("logistic, 5 % hold it", HIGHER[0], ALL),
        Model("logistic, set of 3 values", ["High school graduate", "10th grade", "11th grade"],
              ALL),
        Model("multinomial, 5 classes", "Education", ["Age", "Gender", "Race"],
              {"school": SCHOOL, "associate": ASSOCIATE, "higher": HIGHER},
              {"Education": "High school graduate"}),
        Model("linear", None, ["Gender", "Marital", "Race", "Workclass", "Education"],
              {"primary": SCHOOL[:4]}, {"Education": "High school graduate"}),
    ),
    "Occupation": (
        Model("logistic, 9 % hold it", 2, ALL),
        Model("logistic, 5 % hold it", 29, ALL),
        Model("logistic, set of 4 values", [2, 26, 19, 29], ALL),
        Model("multinomial, 5 classes", "Occupation", ["Age", "Gender", "Race"],
              {"a": tuple(range(1, 10)), "b": tuple(range(10, 20)), "c": tuple(range(20, 30)),
               "d": tuple(range(30, 40)), "e": tuple(range(40, 47))}, {"Occupation": "b"}),
        Model("linear", None, ["Gender", "Marital", "Race", "Workclass", "Occupation"],
              {"rare": RARE}, {"Occupation": 2}),
    ),
}  # fmt: skip


def key(number: int) -> rp.Key:
    """A repeatable key."""
    return rp.Key(hashlib.sha256(f"regression coverage {number}".encode()).digest())


def released(raw: Cube, sampling: str, keys: int) -> Iterator[Cube]:
    """The census table published with one key after another."""
    policy = rp.Policy(retention=RETENTION, tolerance=0.5, doubt=0.3, sampling=sampling)
    for number in range(keys):
        yield published_cube(raw, policy, key(number))


def naive(cube: Cube) -> Cube:
    """The published rows as somebody who knows nothing would take them: every row a record."""
    return replace(cube, trials=cube.records.astype(np.float64))


def kind(model: Model, error: float, term: str, sensitive: str) -> str:
    """The class of a coefficient: how well a log-odds is known, or what a linear one is about."""
    if model.target is None:
        return "of the sensitive column" if term.startswith(f"{sensitive}[") else "of public ones"
    return "se below 0.05" if error < 0.05 else "se up to 0.15" if error < 0.15 else "se above 0.15"


@dataclass
class Tally:
    """What was found on the releases of one sampling rule."""

    covers: dict[tuple[str, float, str], list[bool]]
    refused: dict[tuple[str, float], int]
    figures: dict[tuple[str, str, str], list[float]]


def try_model(model: Model, truth: Regression, cube: Cube, wrong: float, tally: Tally) -> None:
    """Fit one model to one release, believing in a p that may be wrong."""
    sensitive = cube.schema.sensitive.name
    try:
        fit = model.fit(cube, RETENTION * wrong, "none")
    except InputError:
        tally.refused[model.name, wrong] += 1
        return
    for one, true in zip(fit.coefficients, truth.coefficients, strict=True):
        assert (one.term, one.outcome) == (true.term, true.outcome)
        group = kind(model, one.standard_error, one.term, sensitive)
        tally.covers[model.name, wrong, group].append(one.low <= true.estimate <= one.high)
        if wrong == 1.0 and one.outcome is None:
            tally.figures[model.name, one.term, "corrected"].append(one.estimate)
            tally.figures[model.name, one.term, "error"].append(one.standard_error)


def measure(job: tuple[str, str, int]) -> tuple[list[list[Any]], list[list[Any]]]:
    """All models on the releases of one table with one sampling rule."""
    sensitive, sampling, keys = job
    public = [name for name in COLUMNS if name != sensitive]
    source = rp.dataset_path("census_workers")
    with rp.read(source, sensitive=sensitive, public=public) as table:
        raw = collect(table.batches(), table.schema)
    truth = {model.name: model.fit(raw, 1.0, "none") for model in MODELS[sensitive]}
    tally = Tally(defaultdict(list), defaultdict(int), defaultdict(list))
    for number, cube in enumerate(released(raw, sampling, keys)):
        for model in MODELS[sensitive]:
            for wrong in (1.0, 0.7, 1.3) if number < keys // 4 else (1.0,):
                try_model(model, truth[model.name], cube, wrong, tally)
            if number < NAIVE_KEYS:
                for one in model.fit(naive(cube), 1.0, "none").coefficients:
                    tally.figures[model.name, one.term, "naive"].append(one.estimate)
    for name, wrong in tally.refused:
        if not any(key[:2] == (name, wrong) for key in tally.covers):
            tally.covers[name, wrong, "all refused"] = []
    coverage = [
        [sensitive, sampling, name, wrong, group, len(covers), sum(covers),
         tally.refused[name, wrong]]
        for (name, wrong, group), covers in sorted(tally.covers.items())
    ]  # fmt: skip
    shown = [
        [sensitive, sampling, name, one.term, f"{one.estimate:.4f}",
         *(f"{np.mean(tally.figures[name, one.term, what]):.4f}"
           for what in ("corrected", "error", "naive"))]
        for name, fit in truth.items()
        for one in fit.coefficients
        if one.outcome is None
    ]  # fmt: skip
    return coverage, shown


def main() -> None:
    """Measure everything and write both files."""
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    jobs = [(sensitive, size, keys) for sensitive in MODELS for size in SAMPLING_RULES]
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(measure, jobs))
    for name, head, rows in (
        ("regression-coverage.csv",
         "table,sampling,model,assumed_p_over_p,coefficients,pairs,covered,refused_fits",
         [row for coverage, _ in found for row in coverage]),
        ("regression.csv",
         "table,sampling,model,term,raw,corrected,standard_error,naive",
         [row for _, shown in found for row in shown]),
    ):  # fmt: skip
        with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head.split(","))
            writer.writerows(rows)


if __name__ == "__main__":
    main()
