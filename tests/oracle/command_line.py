"""The command line with ``--json``, which must say what Python says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from typer.testing import CliRunner

import reconpriv as rp
from oracle.asking import asked, quietly
from oracle.conditions import public_condition
from oracle.referee import WrongAnswerError
from oracle.run import Desk, OracleQuestion
from oracle.selects import made_select
from reconpriv.cli.app import app


def run_json(*words: str) -> Any:
    """What a command prints, or the error that it ends with."""
    with quietly():
        ended = CliRunner().invoke(app, [*words, "--json"])
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    if ended.exit_code == 0:
        return json.loads(ended.stdout)
    raise rp.ReconprivError(ended.stderr.splitlines()[-1])


def command_line_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """A SELECT, or now and then a cross table, in both ways."""
    folder = str(desk.release.path)
    if rng.random() < 0.75:
        sql = made_select(rng, desk.table).ours()
        words: tuple[str, ...] = ("query", folder, sql)
        other = asked(lambda: desk.release.sql(sql))
    else:
        by = [one.name for one in rng.sample(desk.table.columns, 2)]
        where = public_condition(rng, desk.table).ours
        words = ("crosstab", folder, *by, "--where", where, "--totals", "--shares", "all")
        other = asked(lambda: desk.release.crosstab(by, where, totals=True, shares="all"))

    def check(found: Any) -> None:
        if isinstance(other, rp.ReconprivError):
            raise WrongAnswerError(f"an answer, which Python refuses: {other}")
        if found != json.loads(json.dumps(other.as_dict())):
            raise WrongAnswerError("another JSON than Python's")

    yield OracleQuestion(f"{words[0]} --json", repr(words), lambda: run_json(*words), check)
