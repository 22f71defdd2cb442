"""Queries: random ones against DuckDB on the published table, broken ones, and batch files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from campaign.case import DONE, Case, Generator, Outcome, Step
from campaign.generators import release
from campaign.generators.damage import damaged
from campaign.place import Place

_DOMAIN = ("a", "b", "c")
_COUNT = "SELECT count(*) FROM release"


def _public(rng: Random, depth: int = 0) -> str:
    """A random condition on the public columns."""
    if depth < 3 and rng.random() < 0.5:
        left, right = _public(rng, depth + 1), _public(rng, depth + 1)
        return rng.choice((f"({left} OR {right})", f"({left} AND {right})", f"NOT ({left})"))
    age = rng.randrange(18, 26)
    return rng.choice(
        (
            f"age {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {age}",
            f"age BETWEEN {age} AND {age + rng.randrange(3)}",
            f"age IN ({age}, {age + 2})",
            f"age % {rng.choice((2, 3))} = {rng.randrange(2)}",
            "region = 'north'",
            "region <> 'south'",
            "region IN ('north', 'west')",
            "region LIKE '%o%'",
            "region IS NULL",
            "region IS NOT NULL",
            "length(region) > 4",
            "upper(region) = 'WEST'",
            "CASE WHEN age > 21 THEN region = 'north' ELSE region = 'west' END",
        )
    )


def _condition(rng: Random) -> tuple[str, list[str]]:
    """A condition, and the sensitive values that it asks for (all of them if it asks for none)."""
    public = _public(rng)
    if rng.random() < 0.5:
        return public, list(_DOMAIN)
    values = sorted(rng.sample(_DOMAIN, rng.choice((1, 2))))
    quoted = ", ".join(f"'{value}'" for value in values)
    parts = [public, f"income IN ({quoted})"]
    rng.shuffle(parts)
    return " AND ".join(parts), values


def _estimate(records: int, seen: int, values: list[str]) -> float:
    """The maximum likelihood estimate of a count, as the paper's Equation 5 has it."""
    if len(values) == len(_DOMAIN):
        return float(records)
    noise = (1 - release.RETENTION) * len(values) / len(_DOMAIN)
    return (seen - records * noise) / release.RETENTION


def _plain(place: Place, condition: str, values: list[str]) -> float:
    """The same by plain SQL on the published table."""
    import duckdb  # noqa: PLC0415 - only in processes of their own

    file = place.desk / "out" / "data.parquet"
    public = condition
    for quoted in (f"income IN ({', '.join(repr(value) for value in values)})",):
        public = public.replace(f"{quoted} AND ", "").replace(f" AND {quoted}", "")
    among = ", ".join(f"'{value}'" for value in values)
    with duckdb.connect() as base:
        ((records, seen),) = base.execute(
            f"SELECT count(*), count(*) FILTER (WHERE income IN ({among})) FROM '{file}'"
            f" WHERE {public}"
        ).fetchall()
    return _estimate(records, seen, values)


def _differs(answer: Mapping[str, Any], wanted: float) -> bool:
    """Whether an answer is another one, or lies outside its interval.

    An estimate outside what is possible, as an unbiased one may be, is moved inside by some
    estimators; the interval of the others ends at what is possible.
    """
    found, low, high, records = (float(answer[n]) for n in ("count", "low", "high", "records"))
    if math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-6):
        return not low - 1e-6 <= min(max(found, 0.0), records) <= high + 1e-6
    return 0 <= wanted <= release.RECORDS and not (
        math.isclose(found, low, abs_tol=1e-6) or math.isclose(found, high, abs_tol=1e-6)
    )


def _make_answered(rng: Random, place: Place) -> Case:
    release.copy_to(place)
    condition, values = _condition(rng)
    step = Step(("query", "out", f"{_COUNT} WHERE {condition}", "--json"), codes=(DONE,))
    return Case(condition, (step,), {"condition": condition, "values": values})


def _check_answered(case: Case, place: Place, outcomes: list[Outcome]) -> list[str]:
    answer = json.loads(outcomes[0].out)
    wanted = _plain(place, case.facts["condition"], case.facts["values"])
    if _differs(answer, wanted):
        return [f"{answer['count']} for {wanted}"]
    return []


_TOKENS = (
    "SELECT", "count(*)", "FROM", "release", "WHERE", "AND", "OR", "NOT", "(", ")", "age", "region",
    "income", "=", "<", ">", "'north'", "'a'", "20", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", ",",
    "avg(age)", "share(income = 'a')", "sum(age)", "median(age)", "quantile(age, 0.5)", "*", "--",
    "/*", "*/", ";", "'", '"', "1e999", "NULL", "IS", "IN", "BETWEEN", "LIKE", "CASE", "WHEN",
    "THEN", "END", "JOIN", "UNION", "WITH", "OVER", "random()", "read_csv('my.key')", "?", "$1",
    "::INT", "[1]", "{}", "\\", "\x1b[31m", "é", "😀", "\ud800", "note", "pg_sleep(9)", "count",
    "DISTINCT", "EXISTS", "-", "+", "%", "||", "0x1F", "DATE '2024-01-01'", "INTERVAL 1 DAY",
)  # fmt: skip


def _nested(rng: Random) -> str:
    deep = rng.choice((30, 100, 300, 3_000))
    return rng.choice(
        (
            "(" * deep + "age = 20" + ")" * deep,
            "NOT " * deep + "age = 20",
            " AND ".join(["age > 1"] * min(deep, 300)),
            " OR ".join(["age > 1"] * min(deep, 300)),
            "age = " + "-(" * deep + "1" + ")" * deep,
            "age = " + "abs(" * deep + "1" + ")" * deep,
            "region = '" + "x" * deep * 10 + "'",
            "x" * deep * 10 + " = 1",
            f"age IN ({', '.join(map(str, range(deep)))})",
            "CASE WHEN age = 1 THEN " * deep + "true" + " END" * deep,
        )
    )


def _broken(rng: Random) -> str:
    way = rng.randrange(4)
    if way == 0:
        return " ".join(rng.choice(_TOKENS) for _ in range(rng.randrange(1, 25)))
    if way == 1:
        words = " ".join(rng.choice(_TOKENS) for _ in range(rng.randrange(1, 12)))
        return f"{_COUNT} WHERE {words}"
    if way == 2:
        return f"{_COUNT} WHERE {_nested(rng)}"
    sql = f"SELECT region, count(*) FROM release WHERE {_condition(rng)[0]} GROUP BY region"
    return damaged(rng, sql.encode())[1].replace(b"\0", b"?").decode("utf-8", "surrogateescape")


def _make_broken(rng: Random, place: Place) -> Case:
    release.copy_to(place)
    sql = _broken(rng)
    # An argument that is no text reaches a program as bytes, never as half a surrogate pair.
    sql = sql.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    return Case(sql[:80], (Step(("query", "out", *(["--"] if sql[:1] == "-" else []), sql)),))


def _make_batch(rng: Random, place: Place) -> Case:
    release.copy_to(place)
    asked = [_condition(rng) for _ in range(rng.randrange(1, 12))]
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["sql"])
    writer.writerows([f"{_COUNT} WHERE {condition}"] for condition, _ in asked)
    content, what, good = stream.getvalue().encode(), "good", True
    if rng.random() < 0.6:
        good = False
        what = rng.choice(("damaged", "damaged", "columns", "long"))
        if what == "damaged":
            what, content = damaged(rng, content)
        elif what == "columns":
            names = rng.choice(("region,age", "region,region", "nothing", "region,income,age", ""))
            line = rng.choice(("north,20", "north", "north,20,a", "x\x1b,20", ",,", "\0,1", '"a'))
            content = f"{names}\n{line}\n".encode()
        else:
            content += b"x" * rng.choice((100_000, 200_000)) + b"\n"
    place.write("asked.csv", content)
    out = ("-o", "answers.csv") if rng.random() < 0.5 or good else ()
    step = Step(("query", "out", "--batch", "asked.csv", *out), writes=("answers.csv",))
    return Case(what, (step,), {"asked": asked if good else []})


def _check_batch(case: Case, place: Place, _: list[Outcome]) -> list[str] | None:
    if not case.facts["asked"]:
        return None
    with (place.desk / "answers.csv").open(encoding="utf-8", newline="") as stream:
        answers: list[dict[str, Any]] = list(csv.DictReader(stream))
    wrong = []
    for (condition, values), answer in zip(case.facts["asked"], answers, strict=True):
        wanted = _plain(place, condition, values)
        if _differs(answer, wanted):
            wrong.append(f"{condition}: {answer['count']} for {wanted}")
    return wrong


def _of(
    name: str, tries: str, share: float, make: Callable[[Random, Place], Case], check: Any
) -> Generator:
    return Generator(name, tries, share, make, release.prepare, check)


ANSWERED = _of(
    "queries", "random conditions, compared with DuckDB on the published table", 2.5,
    _make_answered, _check_answered,
)  # fmt: skip
BROKEN = _of(
    "broken queries", "random words, damaged SQL, nesting up to 3,000 levels, very long words", 2.5,
    _make_broken, None,
)  # fmt: skip
BATCH = _of(
    "batch files", "good ones, compared with DuckDB; damaged bytes, wrong columns, long lines", 1.2,
    _make_batch, _check_batch,
)  # fmt: skip
