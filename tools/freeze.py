"""Frozen answers and bytes: what a change of the inside must not change.

Two made tables are published with a fixed key under policies of every kind, each release is asked
the same questions in memory and from disk, and the numbers of all answers and the hashes of all
files are compared with those in tests/frozen.

    python tools/freeze.py --check     # compare; prints what differs
    python tools/freeze.py --write     # after an intended change, which the commit announces
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import reconpriv as rp

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "frozen"
ANSWERS, BYTES = FOLDER / "answers.json.gz", FOLDER / "bytes.json"
WRITER = "pyarrow"  # whose version goes with the bytes
RECORDS = 3_000
TOLERANCE = 1e-9
ROUNDED = 2e-6  # limits of intervals are searched to the sixth decimal
LIMITS = ("low", "high")
# How much of a release may be in memory: nothing, so that its cells are read part by part.
IN_MEMORY = {"memory": 1 << 31, "disk": 0}
UNKNOWN = ("query", "name", "labels", "remarks", "condition", "estimator", "kind", "of")


def records_of(which: str) -> pa.Table:
    """One of the two tables: texts are sensitive in the first, whole numbers in the second."""
    rng = random.Random(which)
    columns: dict[str, list[Any]] = {name: [] for name in ("sex", "town", "age", "weight", "what")}
    illnesses = ["asthma", "burn", "cold", "diabetes", "eczema", "flu", "gout"]
    for _ in range(RECORDS):
        town = rng.choices("ABCDEF", [40, 25, 15, 10, 6, 4])[0]
        sex = rng.choice("fm")
        often = 0.25 if town in "AB" else 0.6 if sex == "f" else 0.9
        place = min(6, int(rng.expovariate(often)))
        columns["sex"].append(sex)
        columns["town"].append(town)
        columns["age"].append(rng.randint(20, 39))
        columns["weight"].append(rng.choice([50.5, 60.0, 72.25]))
        columns["what"].append(illnesses[place] if which == "texts" else place * 2)
    return pa.table(columns)


@cache
def made_table(which: str) -> rp.Table:
    """The table with its roles, opened once."""
    public = ["sex", "town", "age", "weight"]
    return rp.read(records_of(which), sensitive="what", public=public, bin={"age": 5})


def policies(which: str) -> dict[str, rp.Policy]:
    """Sampling rules x plain, margins, protection; bounds, presets and exposed values besides."""
    found: dict[str, rp.Policy] = {}
    for size in ("octave", "public", "none", "paper"):
        found[f"{size} plain"] = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size)
        found[f"{size} margins"] = rp.Policy(
            retention=0.5, tolerance=0.5, doubt=0.3, sampling=size, margins=1.0
        )
        if size != "paper":
            width = {"age": 10, "weight": "*"}
            found[f"{size} protected"] = rp.Policy(
                retention=0.5, tolerance=0.5, doubt=0.3, sampling=size, protect=width
            )
    merged = {"town": "merge", "age": [20, 30, 40]}
    found["octave merged"] = rp.Policy(retention=0.6, tolerance=0.5, doubt=0.2, protect=merged)
    found["recommended"] = rp.preset("recommended")
    found["strict"] = rp.Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.05,
        bound="exact",
        sampling="public",
        unattainable="one-trial",
    )
    found["exact exposed"] = rp.Policy(
        retention=0.4, tolerance=0.6, doubt=0.1, bound="exact", exposed_above=0.2
    )
    harmless = ("cold",) if which == "texts" else (0,)
    found["harmless"] = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, harmless=harmless, exposed_above=0.3
    )
    found["pairs"] = rp.Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.3,
        margins=rp.Margins(2.0, tables=(("sex", "town"), ("age",))),
    )
    return found


Question = Callable[[rp.Release], Any]


def questions(which: str) -> dict[str, Question]:
    """Questions by name, of every figure and every way to ask."""
    some, more = ("flu", "gout") if which == "texts" else (10, 12)
    one = "cold" if which == "texts" else 4
    scores = None
    if which == "texts":
        names = ["asthma", "burn", "cold", "diabetes", "eczema", "flu", "gout"]
        scores = {name: (i - 2) * 1.5 for i, name in enumerate(names)}
    of_two = f"what IN ({some!r}, {more!r})"
    men = "sex = 'm'"
    found: dict[str, Question] = {
        "count": lambda r: r.count(sex="f", what=one),
        "count public": lambda r: r.count(sex="f", town=["A", "C"]),
        "count set": lambda r: r.count(f"{of_two} AND town <> 'A'"),
        "count model": lambda r: r.count(town="F", what=one, estimator="model"),
        "count age": lambda r: r.count("age >= 25 AND weight < 70", what=one),
        "frequencies": lambda r: r.frequencies(town="B"),
        "frequencies 90": lambda r: r.frequencies(men, confidence=0.9, simultaneous=True),
        "crosstab": lambda r: r.crosstab(["town", "what"], shares="row", totals=True),
        "crosstab age": lambda r: r.crosstab(["age", "what"], sex="f", shares="column"),
        "crosstab three": lambda r: r.crosstab(["sex", "town", "what"]),
        "crosstab model": lambda r: r.crosstab(["town", "what"], estimator="model"),
        "crosstab simplex": lambda r: r.crosstab(["sex", "what"], estimator="constrained"),
        "share": lambda r: r.share(men, what=one),
        "share among": lambda r: r.share(sex="f", among=of_two),
        "share nested": lambda r: r.share(what=one, town="A", among={"what": [one, some]}),
        "compare": lambda r: r.compare(men, "sex = 'f'", what=one),
        "compare towns": lambda r: r.compare({"town": "A"}, {"town": "F"}, of_two),
        "compare counts": lambda r: r.compare({"what": one}, {"what": more}, of="count"),
        "compare overlap": lambda r: r.compare({"town": ["A", "B"]}, {"town": ["B", "C"]}, of_two),
        "average": lambda r: r.average("what", men, scores=scores),
        "average public": lambda r: r.average("weight", what=[one, some]),
        "average exact": lambda r: r.average("weight", town="C"),
        "sum": lambda r: r.sum("what", scores=scores, town="D"),
        "sum public": lambda r: r.sum("weight", what=more),
        "median": lambda r: r.median("what", scores=scores, sex="f"),
        "quantile": lambda r: r.quantile("weight", 0.75, what=one),
        "quantile bins": lambda r: r.quantile("age", 0.4, of_two),
        "batch": lambda r: r.count_many(
            [{"town": town, "what": value} for town in "ABCDEF" for value in (one, some, more)]
        ),
        "sql": lambda r: r.sql(
            "SELECT town, count(*), avg(weight), share(sex = 'f'), sum(weight) FROM release"
            f" WHERE {of_two} GROUP BY town"
        ),
        "sql count": lambda r: r.sql(
            f"SELECT count(*) FROM release WHERE {of_two} OR what = {one!r}"
        ),
        "sql group": lambda r: r.sql("SELECT sex, what, count(*) FROM release GROUP BY sex, what"),
        "sql shares": lambda r: (
            r.sql("SELECT town, share(what <> 'flu') FROM release GROUP BY town")
            if which == "texts"
            else r.sql("SELECT town, share(what > 4), median(what) FROM release GROUP BY town")
        ),
        "chi-square": lambda r: r.chi_square("town"),
        "chi-square two": lambda r: r.chi_square(["sex", "weight"], town=["A", "B"]),
        "chi-square records": lambda r: r.chi_square("sex", margins=False),
        "logistic": lambda r: r.logistic([one, some], ["sex", "weight"]),
        "logistic towns": lambda r: r.logistic(one, ["town", "C(weight)"], men),
        "linear": lambda r: r.linear("weight", ["sex", "what"] if which == "texts" else ["sex"]),
    }
    if which == "numbers":
        found["linear"] = lambda r: r.linear("weight", ["sex", "C(what)"])
    return found


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """The numbers of an answer, each with the path to it."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield "/".join(path), float(value)
    elif isinstance(value, dict):
        for name, inside in value.items():
            if name not in UNKNOWN:
                yield from leaves(inside, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for i, inside in enumerate(value):
            yield from leaves(inside, (*path, str(i)))


def plain(found: Any) -> Any:
    """An answer as its dictionary; several as a list of them; an error as its kind."""
    return [plain(one) for one in found] if isinstance(found, list) else found.as_dict()


def answered(release: rp.Release, asked: Question) -> dict[str, float] | str:
    """The numbers of an answer, or the error that there is instead."""
    try:
        return dict(leaves(plain(asked(release))))
    except rp.ReconprivError as error:
        return type(error).__name__


def hashes(folder: Path) -> dict[str, str]:
    """The files of a release."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


def published(scratch: Path, which: str, name: str, file_format: str = "parquet") -> Path:
    """A release of one of the policies."""
    out = scratch / f"{which} {name} {file_format}".replace(" ", "-")
    policy = policies(which)[name]
    made_table(which).publish(policy, out, key=rp.Key.test(), file_format=file_format)
    return out


def made(names: tuple[str, ...] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """All answers and hashes; of some policies, or (None) of all."""
    answers: dict[str, Any] = {}
    files: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for which in ("texts", "numbers"):
            for name in policies(which):
                if names is not None and name not in names:
                    continue
                out = published(Path(folder), which, name)
                files[f"{which}: {name}"] = hashes(out)
                for place, most in IN_MEMORY.items():
                    with patch("reconpriv.release.load._IN_MEMORY", most):
                        release = rp.open(out)
                        for text, asked in questions(which).items():
                            answers[f"{which}: {name}: {place}: {text}"] = answered(release, asked)
                if name in ("octave plain", "recommended", "octave protected"):
                    for other in ("csv", "cells"):
                        out = published(Path(folder), which, name, other)
                        files[f"{which}: {name}: {other}"] = hashes(out)
    return answers, files


def same(path: str, before: float, after: float) -> bool:
    """Whether two numbers agree."""
    if math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return True
    limit = any(path.rsplit("/", maxsplit=1)[-1].endswith(one) for one in LIMITS)
    return limit and abs(before - after) <= ROUNDED * max(1.0, abs(before) * TOLERANCE)


def differences(before: Any, after: Any) -> list[str]:
    """What differs between two answers; a number that is new is none."""
    if isinstance(before, str) or isinstance(after, str):
        return [] if before == after else [f"{kind(before)} -> {kind(after)}"]
    found = []
    for path, number in before.items():
        if path not in after:
            found.append(f"{path} is gone")
        elif not same(path, number, after[path]):
            found.append(f"{path}: {number!r} -> {after[path]!r}")
    return found


def kind(answer: Any) -> str:
    """An error by its name, an answer as one."""
    return answer if isinstance(answer, str) else "an answer"


def frozen() -> tuple[dict[str, Any], dict[str, Any]]:
    """What is committed."""
    answers = json.loads(gzip.decompress(ANSWERS.read_bytes()))
    return answers, json.loads(BYTES.read_text(encoding="utf-8"))


def compared(names: tuple[str, ...] | None = None) -> list[str]:
    """What differs from the frozen answers and bytes; empty if nothing does."""
    answers, files = made(names)
    before, bytes_before = frozen()
    found = []
    for name, one in answers.items():
        found += [f"{name}: {what}" for what in differences(before.get(name, "none"), one)]
    # PyArrow writes its version, and other bytes with another one, into Parquet files.
    same_writer = bytes_before[WRITER] == pa.__version__
    for name, one in files.items():
        if not (same_writer or name.endswith(": csv")):
            continue
        changed = sorted({*one.items()} ^ {*bytes_before.get(name, {}).items()})
        if changed:
            found.append(f"bytes of {name}: {', '.join(sorted({file for file, _ in changed}))}")
    return found


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", help="policies; all by default")
    given = parser.parse_args()
    if given.write:
        answers, files = made()
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
        ANSWERS.write_bytes(gzip.compress(text.encode(), mtime=0))
        files[WRITER] = pa.__version__
        BYTES.write_text(json.dumps(files, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{count(answers):,} answers, {len(files) - 1} releases")
        return 0
    found = compared(tuple(given.names) or None)
    print("\n".join(found[:200]) or "nothing differs")
    return 1 if found else 0


def count(answers: dict[str, Any]) -> int:
    """How many estimates with a value there are."""
    values = ("count", "value", "estimate", "statistic", "difference")
    return sum(
        path.split("/")[-1] in values
        for one in answers.values()
        if not isinstance(one, str)
        for path in one
    )


if __name__ == "__main__":
    sys.exit(main())
