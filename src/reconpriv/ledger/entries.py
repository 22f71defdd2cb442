"""The publications that the lines of a ledger tell of, and the settings that they share.

The settings are keyed hashes of names, of the domain and of how columns are cut. Two publications
are samples of their own if their trials have different words. Words are bound to p, the sensitive
column, its domain, and the public values of a group; so settings are the same if these are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from reconpriv.cells.randomness import Key, encoded, ledger_key
from reconpriv.columns.schema import Column, Schema
from reconpriv.ledger.file import Body
from reconpriv.policy.old_names import restored
from reconpriv.policy.policy import Policy


@dataclass(frozen=True)
class Fingerprint:
    """The settings of a publication that decide which trials it shows.

    ``names`` are the public columns by name alone, ``columns`` with their types and recodings.
    """

    sensitive: str
    domain: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    protect: str | None
    retention: float

    @classmethod
    def of(cls, key: Key, schema: Schema, policy: Policy) -> Self:
        """The fingerprint of what is about to be published."""
        hashed = _hasher(key)

        def described(column: Column) -> str:
            recoding = schema.recoding(column.name)
            how = {} if recoding is None else recoding.as_dict()
            return hashed(b"column", column.name.encode(), column.kind.value.encode(), _text(how))

        column, said = schema.sensitive, policy.wanted_protection.as_dict()
        return cls(
            hashed(b"sensitive", column.name.encode()),
            hashed(b"domain", *(encoded(column, value) for value in schema.domain)),
            tuple(sorted(hashed(b"public", one.name.encode()) for one in schema.public)),
            tuple(sorted(described(one) for one in schema.public)),
            hashed(b"protect", _text(said)) if said else None,
            float(policy.retention),
        )

    @property
    def series(self) -> str:
        """A short name for these settings."""
        return hashlib.blake2b(_text(vars(self)), digest_size=8).hexdigest()

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles in a line that was written before they were recorded by themselves."""
        return (self.sensitive, *self.names)

    def same_table(self, other: Fingerprint) -> bool:
        """True if the sensitive column is the same, or was renamed.

        A renamed one has the same values, and a public column in common.
        """
        renamed = self.domain == other.domain and set(self.names) & set(other.names)
        return self.sensitive == other.sensitive or bool(renamed)

    def differences(self, other: Fingerprint) -> list[str]:
        """What makes the two samples of their own, in words."""
        pairs = {
            "p": (self.retention, other.retention),
            "sensitive column": (self.sensitive, other.sensitive),
            "domain": (self.domain, other.domain),
            "set of public columns": (self.names, other.names),
            "protection": (self.protect, other.protect),
        }
        found = [name for name, (mine, its) in pairs.items() if mine != its]
        if self.names == other.names and self.columns != other.columns:
            found.append("type or binning of a public column")
        return found

    def as_dict(self) -> dict[str, Any]:
        """The settings as a line of the ledger has them."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> Self:
        """The fingerprint that an authenticated line holds."""
        return cls(**said | {name: tuple(said[name]) for name in ("names", "columns")})


def keyed_marks(key: Key) -> Callable[[str, str], str]:
    """A hash of a role and a name; that of an unfolded name is also in the fingerprint."""
    hashed = _hasher(key)
    return cache(lambda role, name: hashed(role.encode(), name.encode()))


def _hasher(key: Key) -> Callable[..., str]:
    secret = ledger_key(key, b"names")

    def hashed(*parts: bytes) -> str:
        joined = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
        return hashlib.blake2b(joined, digest_size=16, key=secret).hexdigest()

    return hashed


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()


PUBLICATION, UNFINISHED, WITHDRAWAL = "publication", "unfinished", "withdrawal"
REPAIR, RECOUNT = "repair", "recount"


@dataclass(frozen=True)
class Withdrawal:
    """A publication was taken back, since its release was never handed out."""

    date: str
    why: str


@dataclass(frozen=True)
class Entry:
    """One publication: its settings, its policy and its totals; no data.

    ``series`` numbers the different samples that the key gave, ``release`` the publications within
    a series. ``roles`` are keyed hashes of the columns with their roles, ``part`` names its trials
    in the count. ``counted`` says whether its trials are among those counted for the series,
    ``finished`` is false if it is known to have failed. One that was withdrawn stays in the ledger
    and counts for nothing: it has neither a series nor a release number.
    """

    line: int
    date: str
    series: int | None
    release: int | None
    fingerprint: Fingerprint
    roles: frozenset[str]
    policy: dict[str, Any]
    rho: float | None
    records: int
    groups: int
    second_sample: bool
    role_change: bool
    part: str | None
    counted: bool
    finished: bool
    withdrawn: Withdrawal | None

    def as_dict(self) -> dict[str, Any]:
        """The publication for JSON, without hashes, which nobody can read."""
        names = {"rho": "margins_rho", "counted": "trials_counted"}
        said = {names.get(name, name): value for name, value in vars(self).items()}
        for hashed in ("fingerprint", "roles", "part"):
            del said[hashed]
        return said | {"withdrawn": self.withdrawn and vars(self.withdrawn)}


_AS_WRITTEN = ("date", "rho", "records", "groups", "second_sample")


def entries_of(bodies: tuple[Body, ...]) -> tuple[Entry, ...]:
    """The publications among the lines of a ledger, in order; also those that were withdrawn."""
    failed = {body["of"] for body in bodies if body["what"] == UNFINISHED}
    gone = {
        body["of"]: Withdrawal(body["date"], body["why"])
        for body in bodies
        if body["what"] == WITHDRAWAL
    }
    recounts = [line for line, body in enumerate(bodies, start=1) if body["what"] == RECOUNT]
    counted_since = max(recounts, default=0)
    series: dict[Fingerprint, int] = {}
    releases: dict[Fingerprint, int] = {}
    found = []
    for line, body in enumerate(bodies, start=1):
        if body["what"] != PUBLICATION:
            continue
        mark = Fingerprint.from_dict(body["fingerprint"])
        finished, counts = line not in failed, line not in gone
        if counts:
            series.setdefault(mark, len(series) + 1)
            releases[mark] = releases.get(mark, 0) + finished
        entry = Entry(
            line=line,
            series=series[mark] if counts else None,
            release=releases[mark] if counts else None,
            fingerprint=mark,
            policy=restored(body["policy"]),
            roles=frozenset(body.get("roles", mark.roles)),
            role_change=body.get("role_change", False),
            part=body.get("part"),
            counted=body["counted"] and line > counted_since,
            finished=finished,
            withdrawn=gone.get(line),
            **{name: body[name] for name in _AS_WRITTEN},
        )
        found.append(entry)
    return tuple(found)


def standing_entries(bodies: tuple[Body, ...]) -> tuple[Entry, ...]:
    """The publications that count: all but those that were withdrawn."""
    return tuple(one for one in entries_of(bodies) if one.withdrawn is None)


def lost_series(bodies: tuple[Body, ...]) -> frozenset[str]:
    """The series that were published, but whose lines the ledger has lost."""
    lost = (body.get("lost", []) for body in bodies if body["what"] == RECOUNT)
    return frozenset(series for part in lost for series in part)
