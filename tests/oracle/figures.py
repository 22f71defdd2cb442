"""Shares, averages, sums, quantiles, comparisons and tables asked for in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import reconpriv as rp
from oracle.asking import rows_of
from oracle.conditions import Two, public_condition, put, sensitive_condition
from oracle.counts import made_wanted
from oracle.referee import Referee, WrongAnswerError, check_value, same_label
from oracle.selects import SHARES, numbers, of_column
from oracle.tables import ROW, MadeTable

TRUE = Two.same("TRUE")


@dataclass(frozen=True)
class PythonQuestion:
    """A call, and a check of its answer that raises :class:`WrongAnswerError`."""

    form: str
    text: str
    ask: Callable[[rp.Release], Any]
    check: Callable[[Referee, Any], None]


def made_python_question(rng: Random, table: MadeTable) -> PythonQuestion:
    """A question to a method of a release."""
    return rng.choice((_mean, _quantile, _share, _compare, _crosstab, _crosstab))(rng, table)


def _selection(rng: Random, table: MadeTable) -> tuple[str | None, dict[str, Any], Two]:
    """A condition, values of columns, and both together."""
    where = public_condition(rng, table) if rng.random() < 0.5 else None
    if rng.random() < 0.4:
        told = sensitive_condition(rng, table)
        where = told if where is None else put("{} AND {}", where, told)
    wanted = made_wanted(rng, table, 1) if rng.random() < 0.4 else []
    equal = {one.column.name: list(one.values) for one in wanted}
    whole = put("({})", where) if where is not None else TRUE
    for one in wanted:
        whole = put("{} AND {}", whole, one.condition)
    return (None if where is None else where.ours), equal, whole


def _estimated(table: MadeTable, told: Two) -> bool:
    return table.sensitive.sql in told.ours


def _value(answer: Any, wanted: Any, estimated: bool, *, ranked: bool = False) -> None:
    """Compare one figure; who nobody can tell are there may have any figure that is no fact."""
    if wanted is None and estimated:
        if answer.exact and answer.value is not None:
            raise WrongAnswerError(f"{answer.value!r}, exact, for nobody")
        return
    check_value(answer.value, wanted, ranked=ranked)


def _mean(rng: Random, table: MadeTable) -> PythonQuestion:
    where, equal, told = _selection(rng, table)
    columns = numbers(table)
    if not columns:
        return _share(rng, table)
    column = rng.choice(columns)
    figure = rng.choice(("average", "sum"))
    name = column.sql if column.recoded is None else column.beside("middle")
    sql = f"SELECT {'avg' if figure == 'average' else 'sum'}({name}) FROM raw WHERE {told.theirs}"
    estimated = column is table.sensitive or _estimated(table, told)

    def check(referee: Referee, answer: Any) -> None:
        _value(answer, referee.one(sql), estimated)

    return PythonQuestion(
        figure, f"{figure}({column.name!r}, {where!r}, **{equal!r})",
        lambda release: getattr(release, figure)(column.name, where, **equal), check,
    )  # fmt: skip


def _quantile(rng: Random, table: MadeTable) -> PythonQuestion:
    where, equal, told = _selection(rng, table)
    columns = numbers(table, ranked=True)
    if not columns:
        return _share(rng, table)
    column, share = rng.choice(columns), rng.choice(SHARES)
    recoded = column.recoded
    name = column.sql if recoded is None else column.beside("place")
    sql = f"SELECT quantile_disc({name}, {share}) FROM raw WHERE {told.theirs}"
    estimated = column is table.sensitive or _estimated(table, told)

    def check(referee: Referee, answer: Any) -> None:
        found = referee.one(sql)
        wanted = found if recoded is None or found is None else recoded.labels[found]
        _value(answer, wanted, estimated, ranked=True)

    how = ("median", column.name) if share == 0.5 else ("quantile", column.name, share)
    return PythonQuestion(
        how[0], f"{how[0]}{how[1:]!r}, {where!r}, **{equal!r}",
        lambda release: getattr(release, how[0])(*how[1:], where, **equal), check,
    )  # fmt: skip


def _share(rng: Random, table: MadeTable) -> PythonQuestion:
    public, own = public_condition(rng, table), sensitive_condition(rng, table)
    way = rng.choice(("plain", "among public", "among holders"))
    counted, base = (public, own) if way == "among holders" else (own, public)
    where = f"{public.ours} AND {own.ours}" if way == "plain" else counted.ours
    among = None if way == "plain" else base.ours
    sql = (
        f"SELECT avg(CASE WHEN {counted.theirs} THEN 1.0 ELSE 0.0 END),"
        f" EXISTS (SELECT 1 FROM raw WHERE {own.theirs}) FROM raw WHERE {base.theirs}"
    )

    def check(referee: Referee, answer: Any) -> None:
        ((found, _),) = referee.rows(sql)
        _value(answer, found, way == "among holders")

    return PythonQuestion(
        f"share, {way}", f"share({where!r}, among={among!r})",
        lambda release: release.share(where, among=among), check,
    )  # fmt: skip


def _compare(rng: Random, table: MadeTable) -> PythonQuestion:
    a, b = public_condition(rng, table), public_condition(rng, table)
    own = sensitive_condition(rng, table)
    of = rng.choice(("share", "count"))
    sides = [f"(SELECT {_side(of, own.theirs)} FROM raw WHERE {one.theirs})" for one in (a, b)]

    def check(referee: Referee, answer: Any) -> None:
        ((first, second),) = referee.rows(f"SELECT {', '.join(sides)}")
        _value(answer.a, first, True)
        _value(answer.b, second, True)
        if first is not None and second is not None:
            check_value(answer.difference, first - second, " as difference")
            if answer.ratio is not None:
                check_value(answer.ratio, first / second, " as ratio")
        json.dumps(answer.as_dict(), allow_nan=False)

    return PythonQuestion(
        f"compare {of}", f"compare({a.ours!r}, {b.ours!r}, {own.ours!r}, of={of!r})",
        lambda release: release.compare(a.ours, b.ours, own.ours, of=of), check,
    )  # fmt: skip


def _side(of: str, condition: str) -> str:
    if of == "count":
        return f"count(*) FILTER (WHERE {condition})"
    return f"avg(CASE WHEN {condition} THEN 1.0 ELSE 0.0 END)"


def _crosstab(rng: Random, table: MadeTable) -> PythonQuestion:
    where, equal, told = _selection(rng, table)
    columns = rng.sample(table.columns, rng.choice((1, 2, 2)))
    by = [one.name for one in columns]
    shares = rng.choice((None, None, "row", "column", "all"))
    if shares == "row" and len(by) == 1:
        shares = "column"
    totals = rng.random() < 0.5
    grouped = [of_column(one).text.theirs for one in columns]
    padded = table.sensitive in columns or _estimated(table, told)
    source = "padded" if padded else "raw"
    counted = f'count(*) FILTER (WHERE "{ROW}" IS NOT NULL)'
    rows, across = (grouped[:-1] or grouped), (grouped[-1:] if len(by) > 1 else [])
    among = {"row": rows, "column": across, "all": [], None: []}[shares]
    over = f"PARTITION BY {', '.join(among)}" if among else ""
    sql = (
        f"SELECT {', '.join(grouped)}, {counted},"
        f" {counted} / nullif(sum({counted}) OVER ({over}), 0)"
        f" FROM {source} WHERE {told.theirs} GROUP BY {', '.join(grouped)}"
    )

    def check(referee: Referee, answer: Any) -> None:
        truth = {_text(row[: len(by)]): row for row in referee.rows(sql)}
        found = rows_of(answer)
        if len(found) != len(truth):
            raise WrongAnswerError(f"{len(found)} rows for {len(truth)}")
        for (labels, (one,)), cell in zip(found, answer.cells, strict=False):
            row = truth.get(_text(labels))
            if row is None or not all(map(same_label, labels, row)):
                raise WrongAnswerError(f"a row {labels!r}")
            _value(one, row[-2], padded)
            if shares is not None:
                _value(cell.share, row[-1], padded)
        whole = sum(row[-2] for row in truth.values())
        if totals:
            check_value(answer.totals[-1].count.count, whole, " in all")
        if totals and across:
            _sides(answer, truth, len(by))
        json.dumps(answer.as_dict(), allow_nan=False)
        if answer.to_arrow().num_rows != len(answer.cells):
            raise WrongAnswerError("another number of rows in Arrow")

    return PythonQuestion(
        f"crosstab{'' if shares is None else ' ' + shares}{' totals' if totals else ''}",
        f"crosstab({by!r}, {where!r}, shares={shares!r}, totals={totals}, **{equal!r})",
        lambda release: release.crosstab(by, where, shares=shares, totals=totals, **equal), check,
    )  # fmt: skip


def _sides(answer: Any, truth: dict[Any, Any], columns: int) -> None:
    """The totals by row and by column are the sums of their cells."""
    found = {"row total": slice(0, columns - 1), "column total": slice(columns - 1, columns)}
    for cell in answer.totals[:-1]:
        part = found[cell.part.replace("_", " ")]
        labels = _text(cell.labels.values())
        wanted = sum(row[-2] for key, row in truth.items() if key[part] == labels)
        check_value(cell.count.count, wanted, f" in all at {cell.labels!r}")


def _text(labels: Any) -> tuple[str, ...]:
    """Labels that can be looked up; -0.0 is published as 0.0."""
    plain = [one + 0.0 if isinstance(one, float) else one for one in labels]
    return tuple(f"{type(one).__name__} {one!r}" for one in plain)
