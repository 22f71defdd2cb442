"""What a table is made of: public attributes, one sensitive attribute and its domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconpriv.columns.given_values import plain_value
from reconpriv.columns.kinds import FITTING, valued
from reconpriv.columns.kinds import Kind as Kind  # noqa: PLC0414 - a part of every schema
from reconpriv.columns.kinds import value_text as value_text  # noqa: PLC0414 - as well
from reconpriv.columns.recoding import Recoding
from reconpriv.errors import InputError
from reconpriv.messages.nearest import column_hint
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.remedies import AS_TEXT, Control, Remedy, either
from reconpriv.messages.text_files import parsed_json, read_side_file

Value = Any

ALL = "all"
"""In place of the names of public columns: every column without another role."""

MAX_UNDECLARED_DOMAIN = 1000

# A public column with at least this share of distinct values looks like an identifier.
_IDENTIFIER_SHARE = 0.5
FEW_RECORDS = 20  # a smaller table is not judged by its unique values and records
MAX_UNIQUE = 0.5  # the share of unique records that is published without a word


@dataclass(frozen=True)
class Column:
    """A column's name and kind."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class ColumnLabels:
    """What a statistical file says about a column: what it is, and what its values stand for.

    A manifest also lists the ``others``, values that occur without a label.
    """

    title: str = ""
    values: tuple[tuple[Value, str], ...] = ()
    description: str = ""
    others: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Public attributes, the sensitive attribute, its full domain in order, and |D|.

    The domain ascends; that of a recoded column is in the order of its bins or groups. ``person``
    says who a row is about; it is never published.
    """

    public: tuple[Column, ...]
    sensitive: Column
    domain: tuple[Value, ...]
    records: int = 0
    recodings: tuple[Recoding, ...] = ()
    person: Column | None = None

    @property
    def domain_size(self) -> int:
        """m, the number of sensitive values."""
        return len(self.domain)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Public attributes first, the sensitive one last."""
        return (*self.public, self.sensitive)

    def recoding(self, name: str) -> Recoding | None:
        """What a column's published values stand for, if it was recoded."""
        return next((one for one in self.recodings if one.column == name), None)


def quote_identifier(name: str) -> str:
    """An SQL identifier that may hold anything."""
    return '"' + name.replace('"', '""') + '"'


def looks_like_identifier(distinct: int, records: int) -> bool:
    """True if there is nearly one distinct value per record."""
    return records >= FEW_RECORDS and distinct >= _IDENTIFIER_SHARE * records


def sort_domain(values: Iterable[Value]) -> tuple[Value, ...]:
    """Sort ascending, a missing value last."""
    present = sorted(value for value in values if value is not None)
    return (*present, *([None] if any(value is None for value in values) else []))


def require_columns(available: Sequence[Column], names: Sequence[str], role: str) -> list[Column]:
    """Find each named column, or say which is missing and which name is nearest."""
    by_name = {column.name: column for column in available}
    found = []
    for name in names:
        if name not in by_name:
            raise InputError(
                f"The table has no column {name!r} (asked for as {role}).",
                hint=column_hint(name, list(by_name)),
            )
        found.append(by_name[name])
    return found


@dataclass(frozen=True)
class ColumnRoles:
    """What each column of a table is: sensitive, public, the person's number, or left out."""

    sensitive: Column
    public: tuple[Column, ...]
    person: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column that is read."""
        person = () if self.person is None else (self.person,)
        return (*self.public, self.sensitive, *person)

    def among(self, available: Sequence[Column]) -> ColumnRoles:
        """The same roles for columns whose kinds are better known by now."""
        kinds = {column.name: column for column in available}
        found = ColumnRoles(
            kinds[self.sensitive.name],
            tuple(kinds[column.name] for column in self.public),
            None if self.person is None else kinds[self.person.name],
        )
        return found.publishable()

    def publishable(self) -> ColumnRoles:
        """The same roles, unless a column holds what no release can hold."""
        for column in self.columns:
            if column.kind is Kind.OTHER:
                raise InputError(
                    f"Column {column.name!r} holds values of a type that cannot be published.",
                    hint=either(Remedy("leave it out", Control.DROP, (column.name,)), AS_TEXT)
                    if column in self.public
                    else AS_TEXT,
                )
        return self


def choose_columns(
    available: Sequence[Column],
    sensitive: str,
    public: Sequence[str] | str,
    drop: Sequence[str] = (),
    person: str | None = None,
) -> ColumnRoles:
    """Settle the roles; with ``ALL`` as ``public``, every column without another role is public."""
    chosen = require_columns(available, [sensitive], "sensitive")[0]
    require_columns(available, drop, "dropped")
    number = "the person's number"
    persons = require_columns(available, [] if person is None else [person], number)
    others = {sensitive: "sensitive"}
    for name, role in [*((name, "dropped") for name in drop), *((c.name, number) for c in persons)]:
        if others.setdefault(name, role) != role:
            raise _two_roles(name, others[name], role)
    if public == ALL:
        kept = [column for column in available if column.name not in others]
        if any(column.name == ALL for column in kept):
            raise InputError(
                f"The table has a column {ALL!r}, so it is not clear what is to be public.",
                hint="Name the public columns one by one.",
            )
    else:
        clash = next((name for name in public if name in others), None)
        if clash is not None:
            raise _two_roles(clash, others[clash], "public")
        repeated = [name for i, name in enumerate(public) if name in public[:i]]
        if repeated:
            raise InputError(f"Column {repeated[0]!r} is listed twice as public.")
        kept = require_columns(available, public, "public")
    return ColumnRoles(chosen, tuple(kept), persons[0] if persons else None).publishable()


def sections(**parts: Any) -> dict[str, Any]:
    """The parts of a document that say something, as plain values; empty ones are left out."""
    return {name: part.as_dict() for name, part in parts.items() if part}


def _two_roles(name: str, first: str, second: str) -> InputError:
    """The error for a column that was given two roles."""
    return InputError(
        f"Column {name!r} has two roles: {first} and {second}.", hint="Give it only one of them."
    )


def choose_domain(
    sensitive: Column, occurring: dict[Value, int], declared: Sequence[Value] | None
) -> tuple[Value, ...]:
    """The domain of the sensitive attribute: declared, or the values that occur."""
    if declared is not None:
        domain = sort_domain(dict.fromkeys(parse_value(sensitive, value) for value in declared))
        whole = [v for v in domain if v is not None and sensitive.kind is Kind.INTEGER]
        if not all(-(2**63) <= v < 2**63 for v in whole):
            raise InputError("The domain holds whole numbers beyond 64 bits.")
        outside = [value for value in occurring if value not in set(domain)]
        if outside:
            raise InputError(
                f"Column {sensitive.name!r} holds values outside the declared domain, for example"
                f" {_shown(outside[0])}.",
                hint=either(
                    "add them to the domain", Remedy("leave those records out", Control.SQL)
                ),
            )
    else:
        domain = sort_domain(occurring)
        if len(domain) > MAX_UNDECLARED_DOMAIN:
            raise InputError(
                f"The sensitive column {sensitive.name!r} has more than"
                f" {MAX_UNDECLARED_DOMAIN:,} distinct values; that is too many to randomise over.",
                hint=either(
                    Remedy("bin it", Control.BIN),
                    Remedy("group its values", Control.GROUP),
                    Remedy("declare the domain ({}) if it really is that large", Control.DOMAIN),
                ),
            )
    check_domain(sensitive, domain)
    return domain


def check_domain(sensitive: Column, domain: Sequence[Value]) -> None:
    """Refuse a domain in which nothing can be hidden."""
    if len(domain) < 2:
        raise InputError(
            f"The sensitive column {sensitive.name!r} has a domain of one value, so nothing can"
            " be hidden.",
            hint=Remedy(
                "declare the full domain ({}) if the table shows only part of it", Control.DOMAIN
            ),
        )


def check_sensitive_kind(sensitive: Column) -> None:
    """Refuse a sensitive column of floating-point numbers or times of day."""
    if sensitive.kind in (Kind.NUMBER, Kind.DECIMAL, Kind.DATETIME, Kind.TIME):
        hint = Remedy("bin it on the way in", Control.SQL)
        if sensitive.kind in (Kind.NUMBER, Kind.DECIMAL):
            bins = (sensitive.name, "0", "1000", "2000")
            hint = Remedy("bin it at borders of your choice", Control.BIN, bins)
        raise InputError(
            f"The sensitive column {sensitive.name!r} holds {sensitive.kind.value} values, which"
            " have no natural finite domain.",
            hint=hint,
        )


def parse_value(column: Column, value: Value) -> Value:
    """The value of a column that is meant by one of any type, or an error if it cannot be any.

    Text is parsed; NaN is a missing value.
    """
    value = plain_value(value)
    if value is None:
        return None
    try:
        return valued(column.kind, value)
    except ValueError:
        raise InputError(
            f"The value {_shown(value)} does not fit column {column.name!r}, which holds"
            f" {column.kind.value} values.",
            hint=FITTING.get(column.kind, ""),
        ) from None


def read_domain(path: Path) -> list[Value]:
    """A domain file: one value per line, or a JSON array if the name ends in .json."""
    text = read_side_file(path, "domain file", "It holds one value per line, in UTF-8.")
    if path.suffix.lower() == ".json":
        try:
            values = parsed_json(text)
        except ValueError as error:
            raise InputError(
                f"The domain file {shown_path(path)} is not valid JSON{error}."
            ) from None
        if not isinstance(values, list) or any(isinstance(one, list | dict) for one in values):
            raise InputError(
                f"The domain file {shown_path(path)} must hold a JSON array of values."
            )
    else:
        values = [line for line in text.splitlines() if line.strip()]
    if not values:
        raise InputError(
            f"The domain file {shown_path(path)} is empty.", hint="Write one value per line."
        )
    return values


def json_value(value: Value) -> Any:
    """A value as JSON knows it; dates and decimals as text."""
    known = value is None or isinstance(value, str | bool | int | float)
    return value if known else str(value)


def _shown(value: Value) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else text[:37] + "…"
