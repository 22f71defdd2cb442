"""The paper's statements, each judged by the results: holds, holds in part, or does not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.research.data import BASES
from reconpriv.research.dp_tables import printed_scores
from reconpriv.research.margins import ADULT, EVERY_ROW, TABLES, WITH, WITHOUT
from reconpriv.research.results import Result, Row
from reconpriv.research.setting import DEFAULT, SWEEPS, SYMBOLS

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
# The error with margins at most this many times that of perturbation alone.
BARS = {"octave": 0.6, "public": 0.9}


# A statement of the paper, the verdict, and the figures behind it.
Judgement = tuple[str, str, str]


@dataclass(frozen=True)
class Finding:
    """The same, with the experiment that it comes from."""

    statement: str
    verdict: str
    evidence: str
    experiment: str


def _verdict(parts: list[bool]) -> str:
    return HOLDS if all(parts) else IN_PART if any(parts) else FAILS


def _each(values: Mapping[Any, float], form: str) -> str:
    """The values with their names."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def _rises(values: list[float], slack: float = 0.0) -> bool:
    return all(b >= a - slack for a, b in itertools.pairwise(values))


def distribution(result: Result) -> Iterator[Judgement]:
    """Whether Education is more skewed than Occupation."""
    size = result.rows[0]["records"] // 1000
    tops = {b: max(r["frequency"] for r in result.select(base=b)) for b in BASES}
    yield (
        f"EDU-{size}K has a more skewed distribution than OCC-{size}K (Figure 1).",
        _verdict([tops["EDU"] > tops["OCC"]]),
        "most frequent value: " + _each(tops, ".1%"),
    )


def violations(result: Result) -> Iterator[Judgement]:
    """Whether every parameter raises the violations, and how many there are at the defaults."""
    for parameter in SWEEPS:
        shares = {
            b: [r["percent_groups"] for r in result.select(base=b, parameter=parameter)]
            for b in BASES
        }
        if not all(len(values) > 1 for values in shares.values()):
            continue  # a small extract has too few records for this sweep
        if not any(value for values in shares.values() for value in values):
            yield (
                f"A larger {SYMBOLS[parameter]} leads to more violating micro groups.",
                "cannot be judged",
                "no group violates the policy anywhere in this sweep",
            )
            continue
        yield (
            f"A larger {SYMBOLS[parameter]} leads to more violating micro groups (Figures 2, 4).",
            _verdict([_rises(values) and values[-1] > values[0] for values in shares.values()]),
            "; ".join(f"{b} " + ", ".join(f"{v:.2f} %" for v in vs) for b, vs in shares.items()),
        )
    found = {
        b: result.select(base=b, parameter="retention", value=DEFAULT.retention)[0] for b in BASES
    }
    yield (
        "A nontrivial share of groups violates the policy although ρ1-ρ2 privacy is ensured.",
        _verdict([row["percent_groups"] > 1 for row in found.values()]),
        "groups (and records in them) at the defaults: "
        + ", ".join(
            f"{b} {row['percent_groups']:.1f} % ({row['percent_records']:.0f} %)"
            for b, row in found.items()
        ),
    )
    small = {
        b: result.select(base=b, parameter="retention", value=0.1)[0]["percent_groups"]
        for b in BASES
    }
    yield (
        "The violation diminishes when p becomes very small (below 20 %).",
        _verdict([share < 0.5 for share in small.values()]),
        "at p = 0.1: " + ", ".join(f"{b} {v:.2f} %" for b, v in small.items()),
    )


def errors(result: Result, base: str, parameter: str, method: str) -> list[float]:
    """The mean relative errors along one sweep."""
    return [r["error"] for r in result.select(base=base, parameter=parameter, method=method)]


def error(result: Result) -> Iterator[Judgement]:
    """What RP and the hardened sizes cost compared with UP."""
    constant = [
        len(set(errors(result, b, parameter, "UP"))) == 1
        for b in BASES
        for parameter in ("epsilon", "delta")
    ]
    yield (
        "UP does not depend on ε and δ (Figures 3, 5).",
        _verdict(constant),
        "the same publication serves all of them",
    )
    for parameter in ("retention", "records"):
        # A small extract has too few records for some sweeps.
        if len(errors(result, "EDU", parameter, "UP")) > 1:
            yield _error_falls(result, parameter)
    yield _price(result)
    hardened = "; ".join(
        f"{m} / UP: " + _each({b: ratio_at_default(result, b, m) for b in BASES}, ".2f")
        for m in ("octave", "public")
    )
    yield (
        "Not in the paper: what it costs not to leak f through the sample size.",
        "measured",
        f"{hardened} at the defaults",
    )


def _error_falls(result: Result, parameter: str) -> Judgement:
    lines = {f"{b} {m}": errors(result, b, parameter, m) for b in BASES for m in ("UP", "RP")}
    return (
        f"The error falls as {SYMBOLS[parameter]} grows.",
        _verdict([_rises([-e for e in values], slack=0.002) for values in lines.values()]),
        "; ".join(f"{n} " + ", ".join(f"{e:.3f}" for e in es) for n, es in lines.items()),
    )


def _price(result: Result) -> Judgement:
    """The paper's main finding: what RP costs compared with UP."""
    at_default = {b: ratio_at_default(result, b, "RP") for b in BASES}
    worst = {
        b: max(
            rp / up
            for parameter in SWEEPS
            for rp, up in zip(
                errors(result, b, parameter, "RP"), errors(result, b, parameter, "UP"), strict=True
            )
        )
        for b in BASES
    }
    return (
        "Across all of p, ε, δ and |D|, the error of RP is only slightly more than that of UP.",
        _verdict([ratio <= 1.6 for ratio in (*at_default.values(), *worst.values())]),
        f"RP / UP at the defaults: {_each(at_default, '.2f')}; largest in any sweep:"
        f" {_each(worst, '.2f')}",
    )


def ratio_at_default(result: Result, base: str, method: str) -> float:
    """The error of a method relative to that of UP at the default parameters."""
    where = {"base": base, "parameter": "retention", "value": DEFAULT.retention}
    return float(
        result.select(**where, method=method)[0]["error"]
        / result.select(**where, method="UP")[0]["error"]
    )


def dp_tables(result: Result) -> Iterator[Judgement]:
    """Whether the paper's counts are those of Laplace noise, and what they show."""
    scores = printed_scores()
    rms = float(np.sqrt((scores**2).mean()))
    yield (
        "The counts printed in Tables 4 and 5 are what Laplace noise with b = 1/λ gives.",
        _verdict([rms < 1.2, bool(np.abs(scores).max() < 4)]),
        f"112 counts against exact probabilities: root mean square z {rms:.2f}, largest"
        f" {np.abs(scores).max():.1f}",
    )
    inside = {}
    for base, number, epsilon in (("EDU", 7, 0.3), ("OCC", 2, 0.2)):
        rows = result.select(base=base, source="paper", group=number, privacy=0.1, epsilon=epsilon)
        inside[f"{base} group {number} within ±{epsilon:.0%}"] = 1 - sum(r["exact"] for r in rows)
    yield (
        "At λ = 0.1 the estimate stays within ±ε with a confidence of 84 % (EDU group 7, ε = 0.3;"
        " OCC group 2, ε = 0.2).",
        _verdict([abs(value - 0.84) < 0.08 for value in inside.values()]),
        f"exact: {_each(inside, '.1%')}",
    )
    totals = {
        privacy: float(np.mean([r["exact"] for r in result.select(privacy=privacy)]))
        for privacy in (0.1, 0.05)
    }
    yield (
        "At λ = 0.05 a larger error is observed, due to the increased noise.",
        _verdict([totals[0.05] > totals[0.1]]),
        ", ".join(f"mean tail at λ = {p:g}: {v:.3f}" for p, v in totals.items()),
    )


def at_default(result: Result, base: str, method: str, margins: str) -> Row | None:
    """A design of the study of margins at the default p, if it could be published."""
    where = {"base": base, "retention": DEFAULT.retention, "method": method, "margins": margins}
    return next(iter(result.select(**where)), None)


def ratio_with_margins(result: Result, base: str, method: str) -> float:
    """The error relative to that of perturbation alone; NaN if margins could not be published."""
    plain = at_default(result, base, "none", WITHOUT)
    found = at_default(result, base, method, WITH)
    return float("nan") if plain is None or found is None else found["error"] / plain["error"]


def margins(result: Result) -> Iterator[Judgement]:
    """What margins give analysts and adversaries, and what leaving rows out costs."""
    for bases, what in ((tuple(BASES), ""), ((ADULT,), " on Adult by age, sex and race")):
        for method, bar in BARS.items():
            ratios = {b: ratio_with_margins(result, b, method) for b in bases}
            yield (
                f"Not in the paper: with margins (ε = 1), the error of {method} is at most {bar:g}"
                f" times that of UP{what}.",
                _verdict([ratio <= bar for ratio in ratios.values()]),
                f"{method} with margins / UP: {_each(ratios, '.2f')}",
            )
    pairs = {
        f"{b} {m}": (before, after)
        for b in TABLES
        for m in BARS
        if (before := at_default(result, b, m, WITHOUT))
        and (after := at_default(result, b, m, WITH))
    }
    yield (
        "Not in the paper: margins do not help an adversary's best unbiased estimate of a group,"
        " since they are counted as trials.",
        _verdict([after["adversary"] <= old["adversary"] + 0.005 for old, after in pairs.values()]),
        "violating groups within ±50 %, without and with margins: "
        + ", ".join(
            f"{name} {old['adversary']:.1%}, {after['adversary']:.1%}"
            for name, (old, after) in pairs.items()
        ),
    )
    rows = {name: after for name, (_, after) in pairs.items()}
    yield (
        "Not in the paper: with what margins tell, no violating group has more trials than its"
        " s_g.",
        _verdict([row["largest_of_s_g"] <= 1 for row in rows.values()]),
        "the most of any group, by true frequencies: "
        + ", ".join(f"{name} {row['largest_of_s_g']:.2f} s_g" for name, row in rows.items())
        + "; above the limit of its class, which is stricter: "
        + ", ".join(
            f"{name} {row['over_limit']:.1%} ({row['largest_of_limit']:.2f} times)"
            for name, row in rows.items()
        ),
    )
    found = []
    for base in TABLES:
        for method in BARS:
            kept, every = (at_default(result, base, method, m) for m in (WITH, EVERY_ROW))
            if kept and every:
                found.append(
                    f"{base} {method} {kept['rows_left_out']:.0f} of {every['rows']:.0f}, error"
                    f" {kept['error']:.3f} instead of {every['error']:.3f}, adversary"
                    f" {kept['adversary']:.0%} instead of {every['adversary']:.0%}"
                )
    yield (
        "Not in the paper: rows of margins that would give a group away are left out.",
        "measured",
        "; ".join(found),
    )
