"""Made tables such as stewards bring, with the role that each column should be proposed for.

A role may be followed by the bins that are proposed with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

N = 3_000


@dataclass(frozen=True)
class Made:
    """A table, its sensitive column and the proposals for all others."""

    table: pa.Table
    sensitive: str
    roles: dict[str, str]


def _dice(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _sick(dice: np.random.Generator, n: int = N) -> list[str]:
    return dice.choice(["asthma", "diabetes", "healthy", "migraine"], n, p=[0.2, 0.2, 0.4, 0.2])


def _people(dice: np.random.Generator, n: int = N) -> dict[str, Any]:
    return {"sex": dice.choice(["f", "m"], n), "region": dice.choice(list("NESW"), n)}


def panel() -> Made:
    """A health panel: four waves of each person."""
    dice = _dice(1)
    people = N // 4
    columns = {
        "id": np.repeat(np.arange(10_001, 10_001 + people), 4),
        "wave": np.tile([1, 2, 3, 4], people),
        **_people(dice),
        "diagnosis": np.repeat(_sick(dice, people), 4),
    }
    roles = {"id": "person", "wave": "public", "sex": "public", "region": "public"}
    return Made(pa.table(columns), "diagnosis", roles)


def weights() -> Made:
    """A survey with weights."""
    dice = _dice(2)
    columns = {
        **_people(dice),
        "pweight": dice.gamma(4.0, 250.0, N).round(3),
        "vote": dice.choice(["left", "right", "none"], N),
    }
    roles = {"sex": "public", "region": "public", "pweight": "drop"}
    return Made(pa.table(columns), "vote", roles)


def visits() -> Made:
    """Hospital visits with dates: one visit of each patient."""
    dice = _dice(3)
    first = dt.date(2024, 1, 1)
    born = dt.date(1930, 1, 1)
    columns = {
        "patient": dice.permutation(N) + 500_000,
        "visit": [first + dt.timedelta(int(d)) for d in dice.integers(0, 700, N)],
        "birth": [born + dt.timedelta(int(d)) for d in dice.integers(0, 30_000, N)],
        "ward": dice.choice(["A", "B", "C"], N),
        "diagnosis": _sick(dice),
    }
    roles = {"patient": "drop", "visit": "public month", "birth": "public year", "ward": "public"}
    return Made(pa.table(columns), "diagnosis", roles)


def derived() -> Made:
    """A test value that was made from the result: 45 if negative, below 45 if positive."""
    dice = _dice(4)
    positive = dice.random(N) < 0.3
    value = np.where(positive, dice.uniform(15, 44, N).round(2), 45.0)
    columns = {
        **_people(dice),
        "ct_result": value,
        "result": np.where(positive, "positive", "negative"),
    }
    return Made(
        pa.table(columns), "result", {"sex": "public", "region": "public", "ct_result": "drop"}
    )


def free_text() -> Made:
    """Notes that somebody typed."""
    dice = _dice(5)
    words = ["came", "in", "with", "a", "cough", "and", "left", "feeling", "better", "today"]
    notes = [" ".join(dice.choice(words, 6)) for _ in range(N)]
    columns = {**_people(dice), "notes": notes, "diagnosis": _sick(dice)}
    return Made(
        pa.table(columns), "diagnosis", {"sex": "public", "region": "public", "notes": "drop"}
    )


def serial_numbers() -> Made:
    """A serial number, an insurance code and names."""
    dice = _dice(6)
    codes = dice.permutation(N)
    columns = {
        "nr": np.arange(1, N + 1),
        "insurance": [f"K{code:06d}" for code in codes],
        "name": [f"{a} {b}" for a, b in zip(dice.choice(list("ABCD"), N), codes, strict=True)],
        **_people(dice),
        "diagnosis": _sick(dice),
    }
    roles = {"nr": "drop", "insurance": "drop", "name": "drop", "sex": "public", "region": "public"}
    return Made(pa.table(columns), "diagnosis", roles)


def timestamps() -> Made:
    """When somebody was admitted, to the second."""
    dice = _dice(7)
    first = dt.datetime(2023, 3, 1)
    when = [first + dt.timedelta(seconds=int(s)) for s in dice.integers(0, 40_000_000, N)]
    columns = {"admitted": when, **_people(dice), "diagnosis": _sick(dice)}
    roles = {"admitted": "public month", "sex": "public", "region": "public"}
    return Made(pa.table(columns), "diagnosis", roles)


def rounded_income() -> Made:
    """Incomes in hundreds, and the same written as text."""
    dice = _dice(8)
    income = np.minimum(dice.lognormal(10.2, 0.5, N) // 100 * 100, 120_000).astype(np.int64)
    columns = {
        "income": income,
        "income_text": [f"{one:,}" for one in income.tolist()],
        **_people(dice),
        "diagnosis": _sick(dice),
    }
    roles = {"income": "public *", "income_text": "drop", "sex": "public", "region": "public"}
    return Made(pa.table(columns), "diagnosis", roles)


def codes() -> Made:
    """Codes with few values, and one that hardly anybody shares."""
    dice = _dice(9)
    columns = {
        "icd": dice.choice([f"{letter}{i:02d}" for letter in "EIJ" for i in range(8)], N),
        "postcode": [f"{one:05d}" for one in dice.zipf(1.3, N) % 900 + 10_000],
        **_people(dice),
        "outcome": dice.choice(["died", "recovered"], N, p=[0.3, 0.7]),
    }
    roles = {"icd": "public", "postcode": "drop", "sex": "public", "region": "public"}
    return Made(pa.table(columns), "outcome", roles)


def yes_no() -> Made:
    """Truth values, a flag that is only ever set, and a column that never changes."""
    dice = _dice(10)
    columns = {
        "smoker": dice.random(N) < 0.3,
        "insured": dice.choice(["yes", "no"], N),
        "flag": [("x" if one else None) for one in dice.random(N) < 0.2],
        "country": ["NL"] * N,
        "diagnosis": _sick(dice),
    }
    roles = {"smoker": "public", "insured": "public", "flag": "public", "country": "drop"}
    return Made(pa.table(columns), "diagnosis", roles)


def dominant() -> Made:
    """A result that is negative for 92 % of the people."""
    dice = _dice(11)
    columns = {
        **_people(dice),
        "age": dice.integers(18, 90, N),
        "result": dice.choice(["negative", "positive", "unclear"], N, p=[0.92, 0.06, 0.02]),
    }
    roles = {"sex": "public", "region": "public", "age": "public 10"}
    return Made(pa.table(columns), "result", roles)


def huge_group() -> Made:
    """Nearly everybody in one group."""
    dice = _dice(12)
    columns = {
        "sex": dice.choice(["f", "m"], N, p=[0.99, 0.01]),
        "region": dice.choice(list("NESW"), N, p=[0.97, 0.01, 0.01, 0.01]),
        "diagnosis": _sick(dice),
    }
    return Made(pa.table(columns), "diagnosis", {"sex": "public", "region": "public"})


TABLES: dict[str, Callable[[], Made]] = {
    made.__name__: made
    for made in (
        panel, weights, visits, derived, free_text, serial_numbers, timestamps, rounded_income,
        codes, yes_no, dominant, huge_group,
    )
}  # fmt: skip
