"""Do 95 % intervals that use margins cover the true count 95 % of the time, over many keys?

A table of 24,000 records with four public attributes; counts, sets of values and GROUP BY tables.
Answers of one release are correlated, so there are many keys. Keys are fixed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import reconpriv as rp
from margin_fixtures import InMemory, answering, cube_of, margin_key, publish_in_memory, schema_of
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.estimate.counts import Design, Settings

P, M, RECORDS = 0.5, 6, 24_000
KEYS = {"none": 60, "octave": 60, "public": 60, "paper": 30}
VALUES = (8, 2, 5, 6)
# True counts from these on; a class needs enough answers to be judged by itself.
CLASSES = np.array([0, 10, 30, 100, 300, 1000, 3000])
SETS = ((0, 3), (1, 2, 4), (2, 5))


@cache
def raw() -> Cube:
    """Every public attribute moves the sensitive one, and two of them together do."""
    rng = np.random.default_rng(11)
    a, b, c, d = (
        rng.choice(k, RECORDS, p=np.arange(k, 0, -1) / (k * (k + 1) / 2))[:, None] for k in VALUES
    )
    v = np.arange(M)
    weights = np.array([0.42, 0.24, 0.16, 0.1, 0.05, 0.03]) * np.exp(
        0.5 * np.sin(1.3 * a + v) + 0.6 * np.cos(2 * b + 0.7 * v) + 0.5 * np.sin(0.9 * c - v)
        + 0.4 * np.sin(a * d + v)
    )  # fmt: skip
    ends = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    s = np.minimum((rng.random((RECORDS, 1)) > ends).sum(axis=1), M - 1)[:, None]
    rows = np.concatenate([a, b, c, d, s], axis=1)
    return cube_of([tuple(row) for row in rows.tolist()], schema_of(4, M))


@cache
def questions() -> tuple[list[Selected], list[float]]:
    """Counts of one value under up to three conditions, with their answers."""
    rng = np.random.default_rng(1)
    truth = Answerer(raw(), Design(P, M, "none"))
    counts = np.zeros((raw().groups, M))
    counts[raw().group, raw().value] = raw().count
    selected, answers = [], []
    for _ in range(90):
        chosen = sorted(rng.choice(4, rng.integers(0, 4), replace=False).tolist())
        wanted = {"abcd"[i]: int(rng.integers(VALUES[i])) for i in chosen}
        value = int(rng.integers(M))
        inside = np.ones(raw().groups, dtype=bool)
        for i in chosen:
            inside &= raw().codes[i] == wanted["abcd"[i]]
        selected.append(truth.select(None, wanted | {"s": value}))
        answers.append(counts[inside, value].sum())
    return selected, answers


@cache
def tables() -> list[tuple[str, Selected, list[str], dict[tuple, float]]]:
    """GROUP BY tables by value, and of sets of values, with their answers."""
    truth = Answerer(raw(), Design(P, M, "none"))
    found = []
    for kind, chosen, by in (
        ("table", tuple(range(M)), ["a", "s"]),
        ("table", tuple(range(M)), ["c", "d", "s"]),
        *(("set", values, by) for values in SETS for by in (["a", "b"], ["c"], [])),
    ):
        selected = truth.select(None, {"s": list(chosen)} if kind == "set" else {})
        true: dict[tuple, float] = {}
        for g, value, count in zip(raw().group, raw().value, raw().count, strict=True):
            if value in chosen:
                codes = {name: raw().codes["abcd".index(name)][g] for name in by if name != "s"}
                label = tuple(int({**codes, "s": value}[name]) for name in by)
                true[label] = true.get(label, 0) + count
        found.append((kind, selected, by, true))
    return found


def ask(answerer: Answerer) -> list[tuple[str, float, rp.Estimate]]:
    """Every question: its kind, its true answer and the estimate."""
    selected, answers = questions()
    found = [
        ("count", true, estimate)
        for true, estimate in zip(answers, answerer.count_many(selected, Settings()), strict=True)
    ]
    for kind, chosen, by, true in tables():
        if by:
            for label, estimate in answerer.table(chosen, by, Settings()):
                found.append((kind, true.get(tuple(label[name] for name in by), 0), estimate))
        else:
            found.append((kind, true[()], answerer.count(chosen, Settings())))
    return found


def published(size: str, key: int) -> InMemory:
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling=size, margins=1.0)
    return publish_in_memory(raw(), policy, margin_key(key))


@cache
def coverage(size: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """True counts and whether the interval holds them, for each kind of question."""
    found: dict[str, list[tuple[float, bool]]] = {"count": [], "set": [], "table": []}
    for key in range(KEYS[size]):
        for kind, true, estimate in ask(published(size, key).answerer):
            found[kind].append((true, estimate.low <= true <= estimate.high))
    return {kind: tuple(map(np.array, zip(*pairs, strict=True))) for kind, pairs in found.items()}


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_95_percent_intervals_cover_93_to_97_percent(size: str) -> None:
    for kind, (true, hits) in coverage(size).items():
        classes = np.digitize(true, CLASSES) - 1
        share = np.array([hits[classes == c].mean() for c in np.unique(classes)])
        worst = np.unique(classes)[share.argmin()]
        print(
            f"{size} {kind}: {hits.mean():.1%} of {hits.size:,}; worst from {CLASSES[worst]:,}:"
            f" {share.min():.1%} of {(classes == worst).sum():,}"
        )
        assert hits.size >= 2_000
        assert 0.93 <= hits.mean() <= 0.97
        enough = np.array([(classes == c).sum() >= 500 for c in np.unique(classes)])
        assert share[enough].min() >= 0.93


def test_intervals_of_paper_cover_roughly_as_much() -> None:
    """Its trials are not published, so they are estimated."""
    for kind, (_, hits) in coverage("paper").items():
        print(f"paper {kind}: {hits.mean():.1%} of {hits.size:,}")
        assert 0.92 <= hits.mean() <= 0.985


def bias(size: str, p: float, keys: int = 12) -> float:
    """The mean square of each question's mean error over the keys, in its standard errors.

    1 if nothing is biased. Margins pull counts into place, so that a wrong p hides in one release.
    """
    errors, squares = [], []
    for key in range(keys):
        answers = ask(answering(published(size, key), Design(p, M, size)))
        errors.append([estimate.count - true for _, true, estimate in answers])
        squares.append([estimate.standard_error**2 for *_, estimate in answers])
    return float(np.mean(keys * np.mean(errors, axis=0) ** 2 / np.mean(squares, axis=0)))


@pytest.mark.parametrize("size", ["none", "public"])
def test_a_p_that_is_off_by_30_percent_is_found_out(size: str) -> None:
    found = [bias(size, share * P) for share in (1.0, 0.7, 1.3)]
    print(f"{size}: {found}")
    assert 0.8 < found[0] < 1.2
    assert min(found[1:]) > 1.3
