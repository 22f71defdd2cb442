"""Naive Bayes trained on raw records, on releases, and on published rows taken at face value.

Writes docs/learning/comparison.csv and comparison.png. Uses the census table: 70 % of it is
published and learned from, 30 % is kept for prediction, with true values.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import reconpriv as rp
from common import COLUMNS
from reconpriv.learning import ReconstructedNaiveBayes

# What is sensitive, and what is predicted: the same, or a public attribute related to it.
TASKS = (
    ("Education", "Education"),
    ("Education", "Occupation"),
    ("Occupation", "Occupation"),
    ("Occupation", "Gender"),
    ("Occupation", "Workclass"),
)
DESIGNS = ("none", "octave", "public")
RETENTIONS = (0.5, 0.2)
FIELDS = (
    "sensitive", "target", "retention", "design", "training", "keys", "accuracy", "accuracy_sd",
    "log_loss", "log_loss_sd",
)  # fmt: skip
OUT = Path(__file__).resolve().parents[1] / "docs" / "learning"

Score = tuple[float, float]


def split() -> tuple[pa.Table, pa.Table]:
    """70 % to learn from, 30 % to predict; always the same split."""
    table = pq.read_table(rp.dataset_path("census_workers"), columns=list(COLUMNS))
    order = np.random.default_rng(2024).permutation(table.num_rows)
    cut = table.num_rows * 7 // 10
    return table.take(pa.array(order[:cut])), table.take(pa.array(order[cut:]))


def features(target: str) -> list[str]:
    return [name for name in COLUMNS if name != target]


def score(model: ReconstructedNaiveBayes, test: pa.Table, target: str) -> Score:
    logs = model.predict_log_proba(test.select([str(name) for name in model.feature_names_in_]))
    position = {value: i for i, value in enumerate(model.classes_.tolist())}
    truth = np.array([position[value] for value in test[target].to_pylist()])
    right = float((logs.argmax(axis=1) == truth).mean())
    return right, float(-logs[np.arange(truth.size), truth].mean())


def fitted(table: pa.Table, target: str, names: list[str], **parameters: Any) -> Any:
    model = ReconstructedNaiveBayes(**parameters)
    return model.fit(table.select(names), table[target].to_numpy(zero_copy_only=False))


def majority(train: pa.Table, test: pa.Table, target: str) -> Score:
    """Predict the most frequent class for everybody; the log-loss uses the training shares."""
    values, counts = np.unique(train[target].to_pylist(), return_counts=True)
    share = dict(zip(values.tolist(), counts / counts.sum(), strict=True))
    truth = test[target].to_pylist()
    top = values[counts.argmax()]
    return float(np.mean([v == top for v in truth])), float(
        -np.mean([np.log(share[v]) for v in truth])
    )


def key(number: int) -> rp.Key:
    return rp.Key(hashlib.sha256(f"learning comparison {number}".encode()).digest())


def releases(
    train: pa.Table, sensitive: str, retention: float, design: str, keys: int
) -> Iterator[rp.Release]:
    policy = rp.Policy(retention=retention, tolerance=0.5, doubt=0.3, sampling=design)
    with rp.read(train, sensitive=sensitive, public=features(sensitive)) as table:
        for number in range(keys):
            with tempfile.TemporaryDirectory() as folder:
                table.publish(policy, Path(folder) / "r", key=key(number), file_format="cells")
                yield rp.open(Path(folder) / "r")


def row(names: tuple[Any, ...], scores: list[Score]) -> dict[str, Any]:
    table = np.array(scores)
    mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1 if len(scores) > 1 else 0)
    figures = (len(scores), mean[0], spread[0], mean[1], spread[1])
    shown = [f"{figure:.4f}" if isinstance(figure, float) else figure for figure in figures]
    return dict(zip(FIELDS, (*names, *shown), strict=True))


def baselines(train: pa.Table, test: pa.Table) -> Iterator[dict[str, Any]]:
    for sensitive, target in TASKS:
        names = features(target)
        yield row((sensitive, target, "", "", "majority"), [majority(train, test, target)])
        raw = fitted(train, target, names)
        yield row((sensitive, target, "", "", "raw"), [score(raw, test, target)])
        if sensitive != target:
            others = [name for name in names if name != sensitive]
            without = fitted(train, target, others)
            scores = [score(without, test, target)]
            yield row((sensitive, target, "", "", "without the sensitive column"), scores)


def compare(train: pa.Table, test: pa.Table, keys: int) -> Iterator[dict[str, Any]]:
    yield from baselines(train, test)
    for sensitive in ("Education", "Occupation"):
        targets = [target for one, target in TASKS if one == sensitive]
        for retention in RETENTIONS:
            for design in DESIGNS:
                found: dict[tuple[str, str], list[Score]] = {}
                for release in releases(train, sensitive, retention, design, keys):
                    rows = release.to_arrow()
                    domain = release.manifest["reconpriv"]["domain"]
                    for target in targets:
                        model = release.naive_bayes(target)
                        naive = fitted(
                            rows, target, features(target), domain=domain,
                            sensitive=None if target == sensitive else sensitive,
                        )  # fmt: skip
                        for name, learned in (("corrected", model), ("naive", naive)):
                            found.setdefault((target, name), []).append(
                                score(learned, test, target)
                            )
                for (target, name), scores in found.items():
                    print(sensitive, target, retention, design, name, scores[0], flush=True)
                    yield row((sensitive, target, retention, design, name), scores)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """How far each way of learning falls behind raw records: one line per task and retention."""
    from reconpriv.show.charts import drawing as charts
    from reconpriv.show.charts import palette

    alt = charts.altair("experiments")
    looks = {"corrected": palette.FIRST, "naive": palette.SECOND}
    raw = {(r["sensitive"], r["target"]): r for r in rows if r["training"] == "raw"}
    lines = [_line(*task, retention) for retention in RETENTIONS for task in TASKS]
    panels = []
    for field, unit, title in (
        ("accuracy", 100.0, "accuracy against raw, percentage points"),
        ("log_loss", 1.0, "log-loss against raw, nats (more is worse)"),
    ):
        values = []
        for r in rows:
            if r["training"] in looks:
                task = (r["sensitive"], r["target"])
                x = unit * (float(r[field]) - float(raw[task][field]))
                sd = unit * float(r[f"{field}_sd"])
                values.append({"line": _line(*task, float(r["retention"])), "design": r["design"],
                               "series": r["training"], "x": x, "low": x - sd,
                               "high": x + sd})  # fmt: skip
        first = field == "accuracy"
        base = alt.Chart(charts.rows(values)).encode(
            y=alt.Y("line:N", title=None, sort=lines, scale=alt.Scale(paddingInner=0.25),
                    axis=alt.Axis(labelLimit=320, labels=first, grid=True, ticks=False)),
            yOffset=alt.YOffset("design:N", sort=list(DESIGNS)),
        )  # fmt: skip
        zero = alt.Chart(charts.rows([{"x": 0}])).mark_rule(color=palette.BLACK)
        bars = base.mark_rule(strokeWidth=1.5).encode(
            x=alt.X("low:Q", title=title, axis=alt.Axis(tickCount=6)), x2="high:Q",
            color=charts.colour(looks),
        )  # fmt: skip
        drawn = alt.layer(zero.encode(x="x:Q"), bars, charts.points(base.encode(x="x:Q"), looks))
        panels.append(charts.panel(drawn, 240, 34 * len(lines)))
    figure = charts.figure(
        panels,
        "Naive Bayes learned from a release, beside raw records",
        note="in each line, from above: none, octave, public; bars: standard deviation over keys",
        entries=[charts.LegendEntry(name, look, "mark") for name, look in looks.items()],
        width=480,
    )
    charts.save(figure, path)


def _line(sensitive: str, target: str, retention: float) -> str:
    if sensitive == target:
        return f"{target}, itself sensitive, p = {retention}"
    return f"{target} from {sensitive} and others, p = {retention}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only-draw", action="store_true", help="from the table that is there")
    arguments = parser.parse_args()
    file = arguments.out / "comparison.csv"
    if not arguments.only_draw:
        run(arguments.keys, file)
    with file.open(encoding="utf-8") as stream:
        draw(list(csv.DictReader(stream)), arguments.out / "comparison.png")


def run(keys: int, file: Path) -> None:
    train, test = split()
    rows = list(compare(train, test, keys))
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
