"""The record of a publication for a disclosure review: one JSON file with figures and no data.

``record.schema.json`` beside this module describes every field. Never in a record: the key, a path,
how many people hold a sensitive value, and the f or s_g of a group.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from reconpriv._version import __version__
from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.classes import DEFINITIONS
from reconpriv.columns.schema import Column
from reconpriv.extras import library_versions
from reconpriv.ledger.entries import Entry
from reconpriv.messages.arguments import checked_methods
from reconpriv.messages.readable import Readable
from reconpriv.messages.remedies import REPLACE, plain_words, worded
from reconpriv.policy.promise import AGAINST, not_promised, promise
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.manifest import Manifest
from reconpriv.release.released_figures import ReleasedFigures
from reconpriv.sources.input_files import InputFile, sha256_of
from reconpriv.writing.file import check_beside, whole_file
from reconpriv.writing.marker import MANIFEST

FORMAT_VERSION = 1
WHAT = "the record for the review board"
_LIBRARIES = ("numpy", "scipy", "pyarrow", "duckdb", "cryptography")
_NOTICE = {
    True: "Internal. The figures under checks.raw_table and the hashes under inputs describe the"
    " raw table: guard this file as you guard the table, and do not hand it out with the release.",
    False: "Made from the release alone: whoever has the release can make this record.",
}
_NEED_TABLE = (
    "k-anonymity, l-diversity and t-closeness of the raw table",
    "groups that could be reconstructed if the table were only perturbed",
    "rows per person",
    "nearly unique columns",
    "columns that give the sensitive value away",
    "columns and records that were left out",
    "hashes of the input",
)


@dataclass(frozen=True)
class TableReview:
    """What a record says of the raw table: its audit and the files that it was read from.

    ``person`` says who a row is about. ``compared`` is what was found to be equal in the table and
    in the release.
    """

    audit: AuditReport
    person: Column | None
    kinds: Mapping[str, str]
    inputs: tuple[InputFile, ...]
    compared: str

    def as_dict(self) -> dict[str, Any]:
        """The checks of the raw table for JSON."""
        audit, single, people = self.audit, self.audit.single_records, self.audit.people
        assert audit.classes is not None
        identifiers = [
            {"column": one.name, "values": one.distinct} for one in audit.columns if one.identifier
        ]
        counts = ("groups", "exposed_groups", "violating_groups", "violating_records")
        return {
            "same_as_release": self.compared,
            "records_left_out": audit.dropped,
            "equivalence_classes": audit.classes.as_dict(),
            "persons": None
            if people is None
            else {
                "persons": people.people,
                "with_several_rows": people.several,
                "most_rows_of_one": people.most,
                "rows_of_nobody": people.unknown,
            },
            "nearly_unique_columns": identifiers,
            "giveaways": [
                {
                    "columns": list(one.columns),
                    "tell_share": round(one.share, 2),
                    "of": "those without the most frequent value" if one.not_ else "one value",
                }
                for one in audit.giveaways
            ],
            "policy": {
                "groups_are": "protection groups" if audit.protection else "micro groups",
                **{name: getattr(audit, name) for name in counts},
                "groups_without_promise": audit.unattainable_groups,
            },
            "one_record": {
                "belief_before": single.prior,
                "belief_after_at_most": round(single.posterior, 4),
            },
            "insisted_on": [
                *(
                    ["nearly unique columns"]
                    if any(one.identifier for one in audit.columns)
                    else []
                ),
                *(one.about for one in audit.obstacles),
            ],
        }


@checked_methods
@dataclass(frozen=True, repr=False)
class ReviewRecord(Readable):
    """Everything that a disclosure review asks for; without ``table``, what the release shows.

    ``entry`` is the line of the ledger, if the key was given and has one.
    """

    made: str
    described: Manifest
    manifest_sha256: str
    released: ReleasedFigures
    table: TableReview | None
    entry: Entry | None
    warnings: tuple[str, ...]

    @property
    def internal(self) -> bool:
        """True if it says anything that the release does not."""
        return self.table is not None or self.entry is not None

    @property
    def audience(self) -> str:
        """Who may see it: internal or public."""
        return "internal" if self.internal else "public"

    def as_dict(self) -> dict[str, Any]:
        """The record as its file has it."""
        said = self.described.promise_as_dict()
        return {
            "record": "reconpriv disclosure review",
            "format_version": FORMAT_VERSION,
            "audience": self.audience,
            "notice": _NOTICE[self.internal],
            "made": self.made,
            "roles": self._roles(),
            "policy": self._policy(),
            "promise": {
                "promised": promise(said),
                "not_promised": not_promised(said),
                "against": AGAINST,
            },
            "checks": {
                "definitions": DEFINITIONS,
                "raw_table": None if self.table is None else self.table.as_dict(),
                "needs_the_table": list(_NEED_TABLE) if self.table is None else [],
                "release": self.released.as_dict(),
            },
            "inputs": [] if self.table is None else [one.as_dict() for one in self.table.inputs],
            "outputs": self._outputs(),
            "ledger": None if self.entry is None else self._ledger_line(self.entry),
            "versions": {
                "release_made_by": self.described.created_by,
                "record_made_by": f"reconpriv {__version__}",
                "python": platform.python_version(),
                **library_versions(*_LIBRARIES),
            },
            "warnings": [worded(one, plain_words) for one in self.warnings],
        }

    def to_json(self) -> str:
        """The record as readable JSON."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the record to a file that only its owner can read: whole, or not at all."""
        with whole_file(Path(path), overwrite=overwrite, private=WHAT, hint=REPLACE) as work:
            work.write_text(self.to_json(), encoding="utf-8")

    def _roles(self) -> list[dict[str, Any]]:
        schema = self.described.schema
        found: list[dict[str, Any]] = []
        for role, columns in (("public", schema.public), ("sensitive", (schema.sensitive,))):
            for column in columns:
                recoding = schema.recoding(column.name)
                found.append(
                    {
                        "column": column.name,
                        "role": role,
                        "kind": column.kind.value,
                        "recoded": None if recoding is None else recoding.declared,
                        "values": schema.domain_size if role == "sensitive" else None,
                    }
                )
        if self.table is None:
            return found
        others = [] if self.table.person is None else [(self.table.person.name, "person")]
        others += [(name, "left out") for name in self.table.audit.left_out]
        for name, role in others:
            kind = self.table.kinds.get(name)
            more = {"recoded": None, "values": None}
            found.append({"column": name, "role": role, "kind": kind, **more})
        distinct = {one.name: one.distinct for one in self.table.audit.columns}
        return [one | {"values": distinct.get(one["column"], one["values"])} for one in found]

    def _policy(self) -> dict[str, Any]:
        """The policy by the names that the documentation uses."""
        policy, extent = self.described.policy, self.described.extent_as_dict()
        return {
            "retention": policy.retention,
            "tolerance": policy.tolerance,
            "doubt": policy.doubt,
            "bound": policy.tail_bound.name,
            "sampling_rule": policy.sampling,
            "exposed_above": policy.exposed_above,
            "harmless": policy.as_dict().get("harmless", []),
            "unattainable": policy.unattainable,
            "margins": extent.get("margins"),
            "protect": extent.get("protect"),
        }

    def _outputs(self) -> dict[str, Any]:
        described = self.described
        found = [
            {"file": name, "part": part, "sha256": digest.removeprefix("sha256:")}
            for part, resource in described.resources.items()
            for name, digest in zip(resource.files.names, resource.files.hashes, strict=True)
        ]
        manifest = {"file": MANIFEST, "part": "manifest", "sha256": self.manifest_sha256}
        return {
            "records": described.records,
            "format": described.file_format,
            "test_key": described.test_key,
            "files": [*found, manifest],
        }

    @staticmethod
    def _ledger_line(entry: Entry) -> dict[str, Any]:
        names = ("line", "date", "series", "release", "records", "groups")
        flags = ("second_sample", "role_change")
        return {name: getattr(entry, name) for name in names + flags}


def review_record(
    stored: ReleaseFolder,
    released: ReleasedFigures,
    *,
    table: TableReview | None = None,
    entry: Entry | None = None,
    warnings: tuple[str, ...] = (),
) -> ReviewRecord:
    """The record of a release, and of the table that it was made from if that is at hand."""
    noted = () if table is None else table.audit.source_warnings
    return ReviewRecord(
        datetime.now(UTC).isoformat(timespec="seconds"),
        stored.manifest,
        sha256_of(stored.path / MANIFEST),
        released,
        table,
        entry,
        tuple(dict.fromkeys((*warnings, *noted))),
    )


def check_record(path: Path, *, overwrite: bool = False, out: Path | None = None) -> None:
    """Refuse a file that cannot be written, or would be handed out with the release ``out``."""
    check_beside(path, out, WHAT, overwrite=overwrite, hint=REPLACE)


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a record, with a description of each field."""
    text = files("reconpriv.release").joinpath("record.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
