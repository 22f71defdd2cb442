"""Naive Bayes trained on raw records, on releases, and on published rows taken at face value.

Writes docs/learning/comparison.csv and comparison.png. The table is the census table, 70 % of it
published and learned from, 30 % kept to be predicted, with true values.
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

# What is sensitive, and what is predicted: itself, or a public attribute that it tells about.
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
    """70 % to learn from, 30 % to predict; always the same."""
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
    """Everybody is of the most frequent class; the log-loss is that of the training shares."""
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
    policy = rp.Policy(retention, 0.5, 0.3, sample_size=design)
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
    """How far each way to learn falls behind raw records: a line a task and retention."""
    from reconpriv.research.figures import require_matplotlib

    pyplot = require_matplotlib()
    lines = [(s, t, p) for p in RETENTIONS for s, t in TASKS][::-1]
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 5), sharey=True)
    looks = {"corrected": ("#1f6f8b", "o"), "naive": ("#c8553d", "X")}
    raw = {(r["sensitive"], r["target"]): r for r in rows if r["training"] == "raw"}
    panels = (
        ("accuracy", 100.0, "accuracy against raw, percentage points"),
        ("log_loss", 1.0, "log-loss against raw, nats (more is worse)"),
    )
    for axis, (field, unit, title) in zip(axes, panels, strict=True):
        axis.axvline(0.0, color="black", linewidth=1)
        for r in rows:
            if r["training"] not in looks:
                continue
            task = (r["sensitive"], r["target"])
            colour, mark = looks[r["training"]]
            y = lines.index((*task, float(r["retention"])))
            y -= 0.22 * (DESIGNS.index(r["design"]) - 1)
            x = unit * (float(r[field]) - float(raw[task][field]))
            error = unit * float(r[f"{field}_sd"])
            axis.errorbar(x, y, xerr=error, fmt=mark, color=colour, markersize=5, linewidth=1)
        axis.set_title(title, fontsize=10)
    names = [
        f"{t}, itself sensitive, p = {p}" if s == t else f"{t} from {s} and others, p = {p}"
        for s, t, p in lines
    ]
    axes[0].set_yticks(range(len(names)), names)
    for name, (colour, mark) in looks.items():
        axes[0].plot([], [], mark, color=colour, label=name)
    figure.legend(loc="lower right", ncols=2, frameon=False)
    figure.text(
        0.01, 0.02, "in each line, from above: none, octave, public; bars: standard deviation over"
        " keys", fontsize=8,
    )  # fmt: skip
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=110)


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
