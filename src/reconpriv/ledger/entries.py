"""The publications that the lines of a ledger tell of, and those that no longer count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconpriv.ledger.file import Body
from reconpriv.ledger.fingerprint import Fingerprint

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
        """What the JSON of a ledger says of it; the hashes are left out, which nobody can read."""
        said = {_IN_JSON.get(name, name): value for name, value in vars(self).items()}
        gone = self.withdrawn
        said["withdrawn"] = None if gone is None else vars(gone)
        return {name: value for name, value in said.items() if name}


_IN_JSON = {
    "rho": "margins_rho", "counted": "trials_counted", "fingerprint": "", "roles": "", "part": "",
}  # fmt: skip


def entries_of(bodies: tuple[Body, ...]) -> tuple[Entry, ...]:
    """The publications among the lines of a ledger, in order; also those that were withdrawn."""
    failed = {body["of"] for body in bodies if body["what"] == UNFINISHED}
    gone = {
        body["of"]: Withdrawal(body["date"], body["why"])
        for body in bodies
        if body["what"] == WITHDRAWAL
    }
    recounts = [line for line, body in enumerate(bodies, start=1) if body["what"] == RECOUNT]
    counted_since = recounts[-1] if recounts else 0
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
        found.append(
            Entry(
                line,
                body["date"],
                series[mark] if counts else None,
                releases[mark] if counts else None,
                mark,
                frozenset(body.get("roles", mark.roles)),
                body["policy"],
                body["rho"],
                body["records"],
                body["groups"],
                body["second_sample"],
                body.get("role_change", False),
                body.get("part"),
                body["counted"] and line > counted_since,
                finished,
                gone.get(line),
            )
        )
    return tuple(found)


def standing_entries(bodies: tuple[Body, ...]) -> tuple[Entry, ...]:
    """The publications that count: all but those that were withdrawn."""
    return tuple(one for one in entries_of(bodies) if one.withdrawn is None)


def lost_series(bodies: tuple[Body, ...]) -> frozenset[str]:
    """The series that were published, but whose lines the ledger has lost."""
    lost = (body.get("lost", []) for body in bodies if body["what"] == RECOUNT)
    return frozenset(series for part in lost for series in part)
