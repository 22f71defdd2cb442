"""Options: any command with random ones, and values that do not belong there."""

from __future__ import annotations

from random import Random
from typing import Any

from campaign.case import DONE, NOT_PRIVATE, REFUSED, Case, Generator, Step
from campaign.generators import release
from campaign.place import KEY, Place

_COMMANDS = (
    "audit", "publish", "query", "info", "export", "report", "workload", "retention", "keygen",
    "chi-square", "learn", "logistic", "linear", "audit", "publish", "workload", "tune",
)  # fmt: skip
_NEVER = ("--engine", "--master", "--to", "--to-table")  # they start servers or want one
_ODD = (
    "", " ", "0", "-1", "1", "2", "0.5", "1e400", "nan", "inf", "-inf", "1e-300",
    "99999999999999999999",
    "0x10", "½", "x", "region", "income", "age", "note", "region,age", "a,b", ",", "a=b", "age=5",
    "age=0,10,20", "age=quantiles:3", "age=quantiles:0", "region=nofile.csv", "age=1e-9",
    "income=a",
    "none", "octave", "paper", "public", "exact", "chernoff", "mle", "parquet", "csv", "cells",
    "drop",
    "value", "refuse", "balanced", "a", "a,b,c", "\x1b[31m", "é" * 300, "../x", "/", "/dev/null",
    ".",
    "out", "my.key", "domain.json", "domain.txt", "nowhere/at/all.csv", "new.csv", "new.parquet",
    "new.html", "1GB", "1KB", "-5MB", "SELECT * FROM input", "SELECT 1", "DROP TABLE input",
    "SELECT * FROM read_csv('my.key')", "region+age", "NULL", "$HOME", "%s", "{}", "--", KEY,
    "postgresql://me:secret@host/x", "x" * 5_000, "\udcff",
)  # fmt: skip
_DOMAINS = (
    '["a", "b", "c"]', "[" * 5_000, '["a", "\\ud800"]', "[1e999]", "[" + "9" * 5_000 + "]", "{}",
    '["a", ["b"]]', '["a", null, "c", true]', "", "[]", '["a\\u0000"]', '["a", "b", "c"',
    "\ufeff[]",
)  # fmt: skip
_NEW = (
    "report.html",
    "new.csv",
    "new.parquet",
    "new.R",  # the script of an export
    "new.html",
    "release2",
    "x",
    KEY,
    "a",
    "region",
    "age",
)


def _known(command: str) -> tuple[list[Any], list[Any]]:
    """The arguments and the options of a command."""
    import typer.main  # noqa: PLC0415 - with the command line, when it is needed

    from reconpriv.cli.app import app  # noqa: PLC0415

    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    options = [one for one in parameters if one.opts[0].startswith("-")]
    return [one for one in parameters if not one.opts[0].startswith("-")], options


def _make(rng: Random, place: Place) -> Case:
    release.copy_to(place)
    table = place.source("table.csv", (place.shared / "table.csv").read_bytes())
    place.write("domain.json", rng.choice(_DOMAINS).encode("utf-8", "surrogatepass"))
    place.write("domain.txt", b"a\nb\nc\n" + rng.choice((b"", b"\xff", b"\0\n", b"9" * 9_000)))
    command = rng.choice(_COMMANDS)
    arguments, options = _known(command)
    usual = {
        "source": table, "release": "out", "out": "release2", "file": "new.csv",
        "sql": "SELECT count(*) FROM release", "columns": "region,age",
    }  # fmt: skip
    words: list[str] = [command]
    for one in arguments:
        strange = rng.random() < 0.08
        words.append(rng.choice(_ODD) if strange else usual.get(one.name, rng.choice(_ODD)))
    if any("-s" in one.opts for one in options) and rng.random() < 0.9:
        words += ["-s", "income"]
        # Not even an audit, which is for the publisher, may show what is left out.
        everything = ["--public=all", "--drop", "note"]
        words += ["--public", "region,age"] if rng.random() < 0.8 else everything
    if command == "publish":
        words += ["--key", "my.key"]
    if command in ("learn", "logistic", "linear"):
        target = "--outcome" if command == "linear" else "--target"
        words += [target, rng.choice(("income", "age", "region")), "--features", "region"]
    if command in ("workload", "tune"):
        words += ["--queries", "20"]
    for one in rng.sample(options, min(len(options), rng.choice((0, 1, 1, 2, 3)))):
        if one.opts[-1] in _NEVER:
            continue
        words.append(rng.choice(one.opts))
        if not getattr(one, "is_flag", False):
            words.append(rng.choice(_ODD))
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words)), rng.choice(_ODD))
    step = Step(tuple(words), codes=(DONE, NOT_PRIVATE, REFUSED), writes=(*_NEW, *_ODD))
    return Case(" ".join(words)[-100:], (step,))


OPTIONS = Generator(
    "options",
    "any option of 13 commands with numbers, names, files and keys that do not belong there",
    3.0,
    _make,
    release.prepare,
    seconds=60.0,
)
