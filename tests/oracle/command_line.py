"""The command line with ``--json``, which must say what Python says."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from typer.testing import CliRunner

import reconpriv as rp
from oracle.asking import asked, quietly
from oracle.conditions import public_condition
from oracle.referee import WrongAnswerError
from oracle.run import Desk, Tally
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


def ask_command_line(desk: Desk, questions: int) -> Tally:
    """SELECTs and cross tables in both ways."""
    tally = Tally()
    folder = str(desk.release.path)
    for number in range(questions):
        rng = Random(f"command line {desk.seed} {number}")
        if number % 4:
            sql = made_select(rng, desk.table).ours()
            words, text = ("query", folder, sql), sql
            other = asked(lambda sql=sql: desk.release.sql(sql))
            form = "query --json"
        else:
            by = [one.name for one in rng.sample(desk.table.columns, 2)]
            where = public_condition(rng, desk.table).ours
            words = ("crosstab", folder, *by, "--where", where, "--totals", "--shares", "all")
            text = repr(words)
            other = asked(
                lambda by=by, where=where: desk.release.crosstab(
                    by, where, totals=True, shares="all"
                )
            )
            form = "crosstab --json"

        def check(found: Any, other: Any = other) -> None:
            if isinstance(other, rp.ReconprivError):
                raise WrongAnswerError(f"an answer, which Python refuses: {other}")
            if found != json.loads(json.dumps(other.as_dict())):
                raise WrongAnswerError("another JSON than Python's")

        tally.take(form, text, lambda words=words: run_json(*words), check)
    return tally
