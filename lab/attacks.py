"""The attack lab's own study: every attack on the census table, as CSV files and pictures.

``python -m lab.attacks docs/attacks`` writes what docs/attacks.md shows.
"""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from lab import attack_pictures as pictures
from reconpriv.attacks.attacked_table import AttackedTable, uniforms
from reconpriv.attacks.differencing import attack_differencing, pairs_of_estimates
from reconpriv.attacks.granularity import Attempt, attack_granularity, attempt, summary
from reconpriv.attacks.infer import attack_infer
from reconpriv.attacks.margins import attack_margins
from reconpriv.attacks.micro import attack_micro
from reconpriv.attacks.micro import measure as measure_micro
from reconpriv.attacks.model import attack_model
from reconpriv.attacks.persons import attack_persons
from reconpriv.attacks.pool import attack_pool
from reconpriv.attacks.pool import measure as measure_pool
from reconpriv.attacks.ratio import attack_ratio
from reconpriv.attacks.repeat import attack_repeat
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.side_channels import attack_side_channels
from reconpriv.attacks.statistics import Rate
from reconpriv.attacks.updates import IN_AND_OUT, attack_updates
from reconpriv.datasets import dataset_path
from reconpriv.policy.policy import SAMPLING_RULES, Policy
from reconpriv.reading import read
from reconpriv.research.data import ATTRIBUTES, BASES, census_population
from reconpriv.table import Table

POLICY = Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
SAMPLES = (300_000, 500_000)
LEAST = (200, 500)
SCALED = ("paper", "octave", "public")
_KEYS = 20
# The ε of margins, how many keys they are attacked with, and for which sampling rules.
MARGINS = 1.0
_MARGIN_KEYS = 10
_WITH_MARGINS = ("none", "octave", "public")
# How many keys neighbours are pooled with, and the classifier that learns from a release.
_POOL_KEYS = 10
_CLASSIFIER = "forest"
# How many keys a model of everybody is fitted with; it is fitted seven times for each.
_MODEL_KEYS = 2
# Made tables of people with several rows: how many people have each number of rows, and how often a
# row shows the person's own value rather than any.
_PEOPLE = 2_000
_ROWS_EACH = (1, 2, 3, 5, 10)
_SAME = {"lasting": 1.0, "changing": 0.5}
# What is protected over: one column, two, and nearly all.
_WIDE: dict[str, int | str] = {"Age": 10, "Race": "*", "Marital": "*", "Workclass": "*"}
PROTECTED: dict[str, tuple[dict[str, int | str], ...]] = {
    **dict.fromkeys(BASES, ({"Age": 10}, {"Age": 10, "Race": "*"}, _WIDE)),
    "Adult": ({"age": 10}, {"age": 10, "race": "*"}, {"age": "*", "race": "*"}),
}


def census_table(base: str) -> Table:
    """The raw census workers, with one of the paper's two attributes sensitive."""
    sensitive = BASES[base]
    public = [name for name in ATTRIBUTES if name != sensitive]
    return read(dataset_path("census_workers"), sensitive=sensitive, public=public)


def census_targets() -> dict[str, AttackedTable]:
    """EDU and OCC: the raw table and the two samples of the study."""
    targets = {}
    population = census_population(SAMPLES[-1])
    for base in BASES:
        with census_table(base) as table:
            targets[f"{base} raw"] = AttackedTable.of(table, POLICY)
        for records in SAMPLES:
            with population.sample(base, records) as table:
                targets[f"{base} {records // 1000}K"] = AttackedTable.of(table, POLICY)
    return targets


def granularity_study(
    targets: dict[str, AttackedTable],
) -> tuple[list[Row], dict[str, dict[str, Attempt]]]:
    """Groups of at least 200 and 500 records on every table and sampling rule; and all groups."""
    rows: list[Row] = []
    kept: dict[str, dict[str, Attempt]] = {}
    for name, target in targets.items():
        exposed = target.only(target.violating(1 if "raw" in name else LEAST[0]))
        for size in SCALED:
            found = attempt(exposed, size)
            kept.setdefault(name, {})[size] = found
            floors = (1, *LEAST) if "raw" in name else LEAST
            rows += [
                {"table": name, **summary(found.where(found.records >= floor), size, floor)}
                for floor in floors
                if (found.records >= floor).any()
            ]
    return rows, kept


def copies_study(kept: dict[str, dict[str, Attempt]], limits: dict[str, Attempt]) -> list[Row]:
    """How often |g1| is exact, by b' = |g|/|g1|: the most that copies can reveal."""
    edges = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, np.inf)
    rows: list[Row] = []
    for base in BASES:
        found = [attempts["paper"] for name, attempts in kept.items() if name.startswith(base)]
        copies = np.concatenate([one.records / one.trials for one in found])
        exact = np.concatenate([one.exact for one in found])
        error = np.concatenate([one.error for one in found])
        best = np.concatenate([one.exact for name, one in limits.items() if name.startswith(base)])
        for low, high in itertools.pairwise(edges):
            inside = (copies >= low) & (copies < high)
            if inside.any():
                rows.append(
                    {
                        "table": base,
                        "copies from": low,
                        "copies to": high,
                        "groups": int(inside.sum()),
                        "|g1| exact": float(exact[inside].mean()),
                        "knowing the rest": float(best[inside].mean()),
                        "median error": float(np.median(error[inside])),
                    }
                )
    return rows


def limits_study(targets: dict[str, AttackedTable]) -> dict[str, Attempt]:
    """`paper` again, for an adversary who knows all shares but the most frequent value's."""
    return {
        name: attempt(
            target.only(target.violating(1 if "raw" in name else LEAST[0])),
            "paper",
            knowing_the_rest=True,
        )
        for name, target in targets.items()
    }


def side_channel_study() -> Iterator[Row]:
    """Every sampling rule for the Education table."""
    with census_table("EDU") as table:
        for size in SAMPLING_RULES:
            result = attack_side_channels(table, replace(POLICY, sampling=size))
            for row in result.table:
                yield {"sampling": size, **row}


def margin_targets() -> dict[str, AttackedTable]:
    """Three tables with margins: the census twice, and one of few attributes and large groups."""
    policy = replace(POLICY, margins=MARGINS)
    targets = {}
    for base in BASES:
        with census_table(base) as table:
            targets[base] = AttackedTable.of(table, policy)
    return targets | {"Adult": adult_target(policy)}


def adult_target(policy: Policy = POLICY) -> AttackedTable:
    """Few attributes and large groups."""
    with read(
        "example:adult", sensitive="occupation", public=["age", "sex", "race"], missing="value"
    ) as table:
        return AttackedTable.of(table, policy)


def pool_study(
    targets: dict[str, AttackedTable], keys: int = _POOL_KEYS
) -> dict[str, AttackResult]:
    """Groups with their neighbours, on every sampling rule."""
    return {name: attack_pool(target, keys=keys) for name, target in targets.items()}


def protection_study(targets: dict[str, AttackedTable], keys: int = _POOL_KEYS) -> Iterator[Row]:
    """The same groups, where their neighbours are protected over as well."""
    for name, target in targets.items():
        for protect, size in itertools.product((None, *PROTECTED[name]), ("public", "octave")):
            policy = replace(target.policy, sampling=size, protect=protect)
            row, _ = measure_pool(replace(target, policy=policy), size, keys)
            said = ", ".join(f"{k}={v}" for k, v in (protect or {}).items())
            yield {"table": name, "protect": said, **row}


def updates_study(targets: dict[str, AttackedTable]) -> Iterator[Row]:
    """The first and the last release of each series, on the sampling rules that limit trials."""
    for (name, target), size in itertools.product(targets.items(), SCALED):
        policy = replace(target.policy, sampling=size)
        rows = attack_updates(replace(target, policy=policy)).table
        last = max(row["releases"] for row in rows)
        for row in rows:
            if row["releases"] in (1, last) and (row["releases"], row["series"]) != (1, IN_AND_OUT):
                yield {"table": name, "sampling": size, **row}


def peoples_table(same: float, values: int = 4) -> Table:
    """2,000 people with each number of rows; their own values are equally frequent.

    A row shows the person's own value with the probability ``same``, otherwise any value.
    """
    each = np.repeat(_ROWS_EACH, _PEOPLE)
    person = np.repeat(np.arange(each.size), each)
    any_value = (uniforms(person.size, "any value") * values).astype(np.int64)
    value = np.where(uniforms(person.size, "same") < same, person % values, any_value)
    columns = {"person": person, "row": np.arange(person.size), "value": value.astype(str)}
    return read(pa.table(columns), sensitive="value", public=["row"], person="person")


def persons_study(keys: int = _KEYS) -> dict[str, AttackResult]:
    """The vote over a person's rows, for a value that lasts and for one that changes."""
    found = {}
    for name, same in _SAME.items():
        with peoples_table(same) as table:
            found[name] = attack_persons(table, POLICY, keys=keys)
    return found


def infer_study(targets: dict[str, AttackedTable]) -> dict[str, AttackResult]:
    """Single people, by naive Bayes and by a forest."""
    return {name: attack_infer(one, classifier=_CLASSIFIER) for name, one in targets.items()}


def model_study(
    targets: dict[str, AttackedTable], keys: int = _MODEL_KEYS
) -> tuple[list[Row], dict[str, AttackResult]]:
    """A model of everybody, fitted to margins; and to what the records say where there are none."""
    rows: list[Row] = []
    results = {}
    for name, target in targets.items():
        results[name] = attack_model(target, keys=keys)
        plain = replace(target, policy=replace(target.policy, margins=None))
        for margins, result in (("yes", results[name]), ("no", attack_model(plain, keys=keys))):
            rows += [{"table": name, "margins": margins, **row} for row in result.table]
    return rows, results


def margins_study(
    targets: dict[str, AttackedTable], keys: int = _MARGIN_KEYS
) -> tuple[list[Row], list[Row]]:
    """Every sampling rule without and with margins; and what the margins tell by themselves."""
    attacked: list[Row] = []
    alone: list[Row] = []
    for name, target in targets.items():
        plain = replace(target, policy=replace(target.policy, margins=None))
        for size, (margins, one) in itertools.product(
            _WITH_MARGINS, (("no", plain), ("yes", target))
        ):
            row = measure_micro(one, size, keys).with_margins()
            attacked.append({"table": name, "margins": margins, **row})
        result = attack_margins(target, keys=keys)
        score = {"z of all cells": result.figures["z"]}
        alone += [{"data": name, **row, **score} for row in result.table]
    return attacked, alone


def _both(results: dict[str, AttackResult]) -> list[Row]:
    return [{"table": base, **row} for base, result in results.items() for row in result.table]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Rows with a header; numbers with six digits."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            values = (row.get(name, "") for name in names)
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])


def markdown_table(path: Path, columns: Sequence[str]) -> str:
    """Some columns of a CSV file as docs/attacks.md shows them: three digits."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    cells = [list(columns), *([_shown(row[name]) for name in columns] for row in rows)]
    lines = ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in cells]
    lines.insert(1, "|" + "---|" * len(columns))
    return "\n".join(lines)


def _shown(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:,.0f}" if number.is_integer() else f"{number:.3g}"


def run_lab(folder: Path) -> None:
    """Write every CSV and picture."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = census_targets()
    raw = {base: targets[f"{base} raw"] for base in BASES}
    micro = {base: attack_micro(target, keys=_KEYS) for base, target in raw.items()}
    write_csv(folder / "micro.csv", _both(micro))
    pictures.draw_micro(_both(micro), POLICY.tolerance, folder / "micro.png")
    ratio = {base: attack_ratio(target) for base, target in raw.items()}
    write_csv(folder / "ratio.csv", _both(dict(list(ratio.items())[:1])))
    write_csv(folder / "ratio-groups.csv", [
        {"table": base, **result.figures} for base, result in ratio.items()
    ])  # fmt: skip
    pictures.draw_ratio(POLICY, folder / "ratio.png")
    rows, kept = granularity_study(targets)
    write_csv(folder / "granularity.csv", rows)
    write_csv(folder / "granularity-copies.csv", copies_study(kept, limits_study(targets)))
    pictures.draw_granularity(kept, folder / "granularity.png")
    repeat = {base: attack_repeat(target, releases=64) for base, target in raw.items()}
    write_csv(folder / "repeat.csv", _both(repeat))
    write_csv(folder / "repeat-figures.csv", [
        {"table": base, **{k: str(v) for k, v in result.figures.items()}}
        for base, result in repeat.items()
    ])  # fmt: skip
    pictures.draw_repeat(_both(repeat), folder / "repeat.png")
    three = {**raw, "Adult": adult_target()}
    updates = {name: attack_updates(target) for name, target in three.items()}
    write_csv(folder / "updates.csv", list(updates_study(three)))
    differencing = {base: attack_differencing(target) for base, target in raw.items()}
    write_csv(folder / "differencing.csv", _both(differencing))
    pictures.draw_differencing(pairs_of_estimates(raw["EDU"]), folder / "differencing.png")
    with_margins = margin_targets()
    attacked, alone = margins_study(with_margins)
    write_csv(folder / "margins.csv", attacked)
    write_csv(folder / "margins-alone.csv", alone)
    pooled = pool_study(three)
    write_csv(folder / "pool.csv", _both(pooled))
    write_csv(folder / "pool-protected.csv", list(protection_study(three)))
    infer = infer_study(three)
    write_csv(folder / "infer.csv", _both(infer))
    fitted, model = model_study(with_margins)
    write_csv(folder / "model.csv", fitted)
    persons = persons_study()
    write_csv(folder / "persons.csv", _both(persons))
    channels = list(side_channel_study())
    write_csv(folder / "side-channels.csv", channels)
    pictures.draw_side_channels(channels, folder / "side-channels.png")
    paper = replace(POLICY, sampling="paper")
    results = {
        "micro": micro,
        "pool": pooled,
        "infer": infer,
        "model": model,
        "ratio": ratio,
        "granularity": {b: attack_granularity(replace(t, policy=paper)) for b, t in raw.items()},
        "repeat": repeat,
        "updates": updates,
        "differencing": differencing,
        "persons": persons,
    }
    write_csv(folder / "rates.csv", rates(results))


def rates(results: dict[str, dict[str, AttackResult]]) -> list[Row]:
    """The three rates of every attack on every table."""
    return [
        {"attack": name, "table": base, "rate": kind, **_rate_row(getattr(result, kind))}
        for name, both in results.items()
        for base, result in both.items()
        for kind in ("success", "baseline", "control")
    ]


def _rate_row(rate: Rate) -> Row:
    return {"share": rate.share, "low": rate.low, "high": rate.high, "of": rate.trials,
            "what": rate.what}  # fmt: skip


if __name__ == "__main__":
    run_lab(Path(sys.argv[1] if len(sys.argv) > 1 else "attacks"))
