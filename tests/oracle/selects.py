"""Made SELECTs: figures, groupings, HAVING, ORDER BY and LIMIT, written in one of many ways."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from oracle.conditions import Two, public_condition, put, sensitive_condition
from oracle.tables import ROW, Made, MadeTable

RAW, PADDED = "raw", "padded"
SHARES = (0.5, 0.1, 0.25, 0.9)


@dataclass(frozen=True)
class Asked:
    """A figure of a SELECT; ``estimated`` if it rests on the sensitive column.

    The referee answers with the place of a label among ``steps``, if there are any. A quantile is
    ``ranked``: one of the values.
    """

    form: str
    text: Two
    filtered: Two | None = None
    estimated: bool = False
    alias: str = ""
    steps: tuple[str, ...] | None = None
    ranked: bool = False

    def written(self, *, padded: bool | None = None) -> str:
        """For the release, or for the referee."""
        if padded is None:
            kept = "" if self.filtered is None else f" FILTER (WHERE {self.filtered.ours})"
            return self.text.ours + kept
        kept_parts = [f'"{ROW}" IS NOT NULL'] if padded else []
        kept_parts += [] if self.filtered is None else [f"({self.filtered.theirs})"]
        kept = f" FILTER (WHERE {' AND '.join(kept_parts)})" if kept_parts else ""
        return self.text.theirs + kept


@dataclass(frozen=True)
class By:
    """What rows are grouped by: how it is written, and what the referee sorts it by."""

    text: Two
    place: str
    alias: str = ""


@dataclass(frozen=True)
class Key:
    """An item of ORDER BY: a grouping or a figure by its place, and how it is written."""

    figure: bool
    place: int
    way: str
    direction: str


@dataclass(frozen=True)
class Select:
    """A SELECT in parts; ``sensitive`` is the part of WHERE about the sensitive column."""

    figures: tuple[Asked, ...]
    by: tuple[By, ...] = ()
    public: Two | None = None
    sensitive: Two | None = None
    having: tuple[tuple[int, str, str], ...] = ()
    order: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int | None = None
    by_way: str = "text"
    figures_first: bool = False
    split: bool = False

    @property
    def padded(self) -> bool:
        """Whether every combination has a row, because nobody can tell which ones are empty."""
        return self.sensitive is not None or self.split

    def estimated(self, figure: Asked) -> bool:
        """Whether a figure is an estimate."""
        return figure.estimated or self.padded

    @property
    def form(self) -> str:
        """What to call it in a tally."""
        names = "+".join(dict.fromkeys(one.form for one in self.figures[:1]))
        return f"{names}{' BY' if self.by else ''}"

    def ours(self) -> str:
        """The text that the release is asked."""
        bys = [one.text.ours + (f' AS "{one.alias}"' if one.alias else "") for one in self.by]
        figures = [
            one.written() + (f' AS "{one.alias}"' if one.alias else "") for one in self.figures
        ]
        columns = [*figures, *bys] if self.figures_first else [*bys, *figures]
        at = len(figures) if self.figures_first else 0
        parts = [f"SELECT {', '.join(columns)} FROM release"]
        where = [one.ours for one in (self.public, self.sensitive) if one is not None]
        parts += [f"WHERE {' AND '.join(where)}"] if where else []
        if self.by:
            written = {
                "text": ", ".join(one.text.ours for one in self.by),
                "place": ", ".join(str(at + i + 1) for i in range(len(self.by))),
                "all": "ALL",
                "alias": ", ".join(
                    f'"{one.alias}"' if one.alias else one.text.ours for one in self.by
                ),
            }
            parts.append(f"GROUP BY {written[self.by_way]}")
        if self.having:
            kept = [f"{self._having(i)} {operator} {n}" for i, operator, n in self.having]
            parts.append(f"HAVING {' AND '.join(kept)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(self._key(one, at) for one in self.order)}")
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f"OFFSET {self.offset}"] if self.offset is not None else []
        return " ".join(parts)

    def _having(self, i: int) -> str:
        one = self.figures[i]
        return f'"{one.alias}"' if one.alias else one.written()

    def _key(self, key: Key, at: int) -> str:
        one = self.figures[key.place] if key.figure else self.by[key.place]
        places = (0 if self.figures_first else len(self.by)) if key.figure else at
        alias = f'"{one.alias}"' if one.alias else ""
        text = one.written() if isinstance(one, Asked) else one.text.ours
        shown = {"place": str(places + key.place + 1), "alias": alias or text, "text": text}
        return f"{shown[key.way]}{key.direction}"

    def theirs(self, *, whole: bool = False) -> str:
        """The text for the referee: groupings, figures, then the keys of the order.

        If ``whole``, without HAVING, ORDER BY and LIMIT.
        """
        figures = [one.written(padded=self.padded) for one in self.figures]
        keys = [figures[k.place] if k.figure else self._sorted_by(k) for k in self.order]
        columns = [f"{one.text.theirs} AS g{i}" for i, one in enumerate(self.by)]
        columns += [f"{one} AS f{i}" for i, one in enumerate(figures)]
        columns += [f"{one} AS k{i}" for i, one in enumerate(keys)]
        parts = [f"SELECT {', '.join(columns)} FROM {PADDED if self.padded else RAW}"]
        where = [one.theirs for one in (self.public, self.sensitive) if one is not None]
        parts += [f"WHERE {' AND '.join(f'({one})' for one in where)}"] if where else []
        if self.by:
            parts.append(f"GROUP BY {', '.join(one.text.theirs for one in self.by)}")
        if whole:
            return " ".join(parts)
        if self.having:
            kept = [f"{figures[i]} {operator} {n}" for i, operator, n in self.having]
            parts.append(f"HAVING {' AND '.join(kept)}")
        if self.order:
            sorting = [f"{one}{k.direction}" for one, k in zip(keys, self.order, strict=True)]
            parts.append(f"ORDER BY {', '.join(sorting)}")
        return " ".join(parts)

    def _sorted_by(self, key: Key) -> str:
        return self.by[key.place].place


def of_column(column: Made) -> By:
    """Rows by a column: of bins by their labels, in their order."""
    if column.recoded is not None:
        text = Two(column.sql, column.beside("label"))
        return By(text, f"min({column.beside('place')})")
    place = f"CAST({column.sql} AS INT)" if column.kind == "code" else column.sql
    return By(Two.same(column.sql), place)


def _expression(rng: Random, column: Made) -> By | None:
    """Rows by an expression over a public column."""
    name = column.sql
    ways = {
        "integer": [f"{name} % 3", f"{name} // 10 * 10", f"{name} > 1", f"{name} + 0.5",
                    f"CASE WHEN {name} > 1 THEN 'many' ELSE 'few' END", f"abs({name})"],
        "text": [f"length({name})", f"upper({name})", f"{name} || '!'", f"{name} = ''",
                 f"coalesce({name}, '?')"],
        "date": [f"year({name})", f"month({name})", f"date_trunc('month', {name})"],
        "timestamp": [f"{name}::DATE", f"hour({name})"],
        "zoned": [f"hour({name})"],
        "boolean": [f"NOT {name}", f"{name} IS NULL"],
        "decimal": [f"{name} * 2", f"{name} > 1"],
        "float": [f"{name} > 1", f"round({name})"],
    }.get(column.kind)  # fmt: skip
    if ways is None:
        return None
    text = rng.choice(ways)
    return By(Two.same(text), text, rng.choice(("", "e", "some name")))


def numbers(table: MadeTable, *, ranked: bool = False) -> list[Made]:
    """The columns that have an average, or, if ``ranked``, a quantile."""
    kinds = ("integer", "float", "decimal", "bins", *(("open bins", "periods") if ranked else ()))
    # Floating-point sums of huge numbers are right to a share of the largest only.
    return [
        one
        for one in table.columns
        if one.kind in kinds
        and (ranked or one.recoded is not None or all(abs(v) < 1e12 for v in one.present))
    ]


def _figure(rng: Random, table: MadeTable) -> Asked:
    """A figure without FILTER."""
    way = rng.choice(("count", "count", "share", "mean", "mean", "quantile", "quantile", "case"))
    if way == "count":
        return Asked("count", Two.same("count(*)"))
    if way in ("share", "case"):
        sensitive = rng.random() < 0.6
        told = (sensitive_condition if sensitive else public_condition)(rng, table)
        if way == "share":
            shared = Two(f"share({told.ours})", _case("avg", told.theirs, "0.0"))
            return Asked("share", shared, estimated=sensitive)
        pattern = rng.choice(
            (
                "avg(CASE WHEN {} THEN 1 ELSE 0 END)",
                "sum(CASE WHEN {} THEN 1 ELSE 0 END)",
                "sum(CASE WHEN {} THEN 1 END)",
                "count(CASE WHEN {} THEN 1 END)",
                "avg(({})::INT)",
                "sum(({})::INT)",
                "avg(CAST({} AS DOUBLE))",
            )
        )
        return Asked(pattern.replace("{}", "…"), put(pattern, told), estimated=sensitive)
    fitting = numbers(table, ranked=way == "quantile")
    if not fitting:
        return Asked("count", Two.same("count(*)"))
    column = rng.choice(fitting)
    own = column is table.sensitive
    if way == "mean":
        figure = rng.choice(("avg", "sum"))
        if column.recoded is not None:
            text = Two(f"{figure}({column.sql})", f"{figure}({column.beside('middle')})")
        else:
            text = Two.same(f"{figure}({_argument(rng, column, own)})")
        return Asked(figure, text, estimated=own)
    return _quantile(rng, table, column)


def _argument(rng: Random, column: Made, own: bool) -> str:
    name = column.sql
    if own or rng.random() < 0.6:
        return name
    case = f"CASE WHEN {name} > 1 THEN {name} END"
    ways = ("{} * 2", "{} + 1", "-{}", "abs({})", "coalesce({}, 0)", case)
    return rng.choice(ways).replace("{}", name)


def _quantile(rng: Random, table: MadeTable, column: Made) -> Asked:
    own, share = column is table.sensitive, rng.choice(SHARES)
    of = column.sql if column.recoded else _argument(rng, column, own)
    ways = [f"quantile({of}, {share})", f"quantile_disc({of}, {share})",
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {of})"]  # fmt: skip
    ours = rng.choice([*ways, *([f"median({of})"] * 3 if share == 0.5 else [])])
    if column.recoded is None:
        theirs = f"quantile_disc({of}, {share})"
    else:
        theirs = f"quantile_disc({column.beside('place')}, {share})"
    steps = None if column.recoded is None else column.recoded.labels
    return Asked(ours.split("(")[0], Two(ours, theirs), None, own, "", steps, ranked=True)


def _case(function: str, condition: str, otherwise: str) -> str:
    return f"{function}(CASE WHEN {condition} THEN 1.0 ELSE {otherwise} END)"


def made_select(rng: Random, table: MadeTable) -> Select:
    """A SELECT of one figure or several, with or without groups."""
    figures: list[Asked] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        one = _figure(rng, table)
        if rng.random() < 0.25 and "share(*)" not in one.text.ours:
            sensitive = rng.random() < 0.4
            told = (sensitive_condition if sensitive else public_condition)(rng, table)
            one = replace(one, filtered=told, estimated=one.estimated or sensitive)
        if rng.random() < 0.35:
            alias = rng.choice(("a", "m n", "Größte", "order"))
            one = replace(one, alias=f"{alias}{len(figures)}")
        if one.written() not in [other.written() for other in figures]:
            figures.append(one)
    public = public_condition(rng, table) if rng.random() < 0.5 else None
    own = sensitive_condition(rng, table) if rng.random() < 0.25 else None
    found = Select(tuple(figures), public=public, sensitive=own)
    return _grouped(rng, table, found) if rng.random() < 0.65 else found


def _grouped(rng: Random, table: MadeTable, select: Select) -> Select:
    by: list[By] = []
    split = False
    for column in rng.sample(table.columns, rng.choice((1, 1, 2))):
        own = column is table.sensitive
        about = any(column.sql in one.text.ours for one in select.figures)
        if own and about:
            continue  # a quantile of the sensitive column by itself is refused
        expression = None if own or rng.random() < 0.65 else _expression(rng, column)
        one = of_column(column) if expression is None else expression
        if not one.alias and rng.random() < 0.2:
            one = replace(one, alias=rng.choice(("r", "Some row")) + str(len(by)))
        by.append(one)
        split = split or own
    aliases = [one.alias for one in by if one.alias]
    if not by or len(set(aliases)) < len(aliases):
        return select
    ways = ["text", "place", "all", *(["alias"] if aliases else [])]
    select = replace(
        select, by=tuple(by), split=split, by_way=rng.choice(ways),
        figures_first=rng.random() < 0.2,
    )  # fmt: skip
    if rng.random() < 0.3:
        select = replace(select, having=_having(rng, select))
    if rng.random() < 0.6:
        select = _ordered(rng, select)
    return select


def _having(rng: Random, select: Select) -> tuple[tuple[int, str, str], ...]:
    place = rng.randrange(len(select.figures))
    form = select.figures[place].form
    if form in ("count", "sum(CASE WHEN … THEN 1 ELSE 0 END)"):
        number = f"{rng.randrange(40)}{'.5' if select.estimated(select.figures[place]) else ''}"
    elif form in ("share", "avg(CASE WHEN … THEN 1 ELSE 0 END)", "avg((…)::INT)"):
        number = f"{rng.random():.7f}"
    elif form in ("avg", "sum"):
        number = f"{rng.uniform(-20, 60):.7f}"
    else:
        return ()
    return ((place, rng.choice(("<", "<=", ">", ">=", "<>")), number),)


def _ordered(rng: Random, select: Select) -> Select:
    places = [(False, i) for i in range(len(select.by))]
    places += [(True, i) for i in range(len(select.figures))]
    chosen = rng.sample(places, rng.randint(1, len(places)))
    keys = tuple(
        Key(
            figure, i, rng.choice(("text", "place", "alias")),
            rng.choice(("", "", " ASC", " DESC"))
            + rng.choice(("", "", " NULLS FIRST", " NULLS LAST")),
        )
        for figure, i in chosen
    )  # fmt: skip
    limit = rng.choice((None, None, 1, 2, 5))
    offset = rng.choice((None, None, 1)) if limit is not None else None
    return replace(select, order=keys, limit=limit, offset=offset)


def share_of_values(rng: Random, table: MadeTable) -> tuple[str, str]:
    """share(*), for the release and for the referee."""
    told = sensitive_condition(rng, table)
    public = public_condition(rng, table)
    by = of_column(rng.choice(table.public))
    ours = (
        f"SELECT {by.text.ours}, share(*) FROM release WHERE {public.ours} AND {told.ours}"
        f" GROUP BY {by.text.ours}"
    )
    shared = _case("avg", told.theirs, "0.0")
    satisfiable = f"EXISTS (SELECT 1 FROM {PADDED} WHERE {told.theirs})"
    theirs = (
        f"SELECT {by.text.theirs}, {shared} FROM {RAW} WHERE ({public.theirs}) AND {satisfiable}"
        f" GROUP BY {by.text.theirs}"
    )
    return ours, theirs
