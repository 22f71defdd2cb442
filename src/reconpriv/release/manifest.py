"""The manifest of a release: a Data Package (v2) descriptor with a ``reconpriv`` block.

Everything in it is derived from the published table or from the policy, or is a label that the
publisher's file gives a published column. Never in it: the key, a frequency, an s_g, a raw count,
or where the table came from. Only this module and those of its parts (``described`` and
``labels``) know the names that the JSON uses.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

from reconpriv._version import __version__
from reconpriv.columns.recoding import Recoding, read_recoding
from reconpriv.columns.schema import (
    Column,
    ColumnLabels,
    Kind,
    Schema,
    json_value,
    parse_value,
    sections,
)
from reconpriv.engines.base import Layout, Written
from reconpriv.engines.writer import cell_count_name, count_names
from reconpriv.errors import MissingFileError, ReleaseError
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.text_files import parsed_json
from reconpriv.policy.old_names import stored
from reconpriv.policy.policy import Policy
from reconpriv.policy.promise import ONE_ROW
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.release.described import (
    NO_MARGIN_FILES,
    DescribedMargins,
    Files,
    Resource,
    as_count,
    as_number,
    as_text,
)
from reconpriv.release.labels import describe_field, read_labels
from reconpriv.sources.databases.url import is_database_url
from reconpriv.theory.tails.bounds import named_bound
from reconpriv.writing.marker import BLOCK, MANIFEST

FORMAT_VERSION = 6  # the newest that is read
TEST_KEY_NOTE = "Made with the test key, which everybody knows: not for release."

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_POLICY = ("sampling", "retention", "tolerance", "doubt", "bound", "unattainable")
_COUNT_NAMES = ("records", "trials")
DATA, GROUPS, MARGINS = "data", "groups", "margins"


@dataclass(frozen=True)
class Manifest:
    """What a release says about itself, whether it is about to be written or was read.

    ``policy`` is the whole policy that it was made with, but for frequencies of the table, which
    no release has. ``group_files`` and ``count_names`` (of records and trials) are there if trials
    are published, ``cell_count`` if the data are cells; with ``protect``, groups and trials are
    those of protection groups. ``one_row_per_person`` says that this was checked, not only assumed.
    ``unknown`` names whatever else was in the file.
    """

    schema: Schema
    policy: Policy
    method: str
    created_by: str
    records: int
    test_key: bool
    file_format: str
    data_files: Files
    group_files: Files | None = None
    count_names: tuple[str, str] = _COUNT_NAMES
    cell_count: str | None = None
    labels: Mapping[str, ColumnLabels] = field(default_factory=dict)
    margins: DescribedMargins = NO_MARGIN_FILES
    protect: Coarsening = NO_COARSENING
    one_row_per_person: bool = False
    news_only: bool = False
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        schema: Schema,
        policy: Policy,
        written: Written,
        *,
        layout: Layout,
        test_key: bool,
        labels: Mapping[str, ColumnLabels],
        margins: DescribedMargins = NO_MARGIN_FILES,
        protect: Coarsening = NO_COARSENING,
    ) -> Self:
        """The manifest of what was just written; ``labels`` are those that are published."""
        of_groups = protect.coarse(schema)
        return cls(
            # Neither the source's number of records nor who they are about is published.
            schema=replace(schema, records=0, person=None),
            one_row_per_person=schema.person is not None,
            policy=replace(
                policy,
                bound=named_bound(policy.tail_bound.name),
                margins=margins.wanted,
                protect=protect.wanted,
                harmless=policy.harmless_in(schema),
            ).on(schema),
            method=policy.sampling_rule.method,
            created_by=f"reconpriv {__version__}",
            records=written.records,
            test_key=test_key,
            file_format=layout.file_format,
            data_files=Files.of(written.data),
            group_files=Files.of(written.groups_files) if layout.with_trials else None,
            count_names=count_names(of_groups) if layout.with_trials else _COUNT_NAMES,
            cell_count=cell_count_name(schema) if layout.cells else None,
            labels=labels,
            margins=margins,
            protect=protect,
        )

    @property
    def format_version(self) -> int:
        """The oldest format whose readers understand this manifest."""
        recodings, tables, pooled = self.schema.recodings, self.margins.tables, self.pooled
        needed = {
            6: pooled and tables,  # older ones would look for values of micro groups in the margins
            5: any(one.dated or one.closed for one in recodings),
            # Older ones would misread trials, or claim that all values are protected.
            4: pooled or self.news_only or not self.policy.tests_everything,
            3: tables,
            2: recodings,
        }
        return next((version for version, there in needed.items() if there), 1)

    @property
    def group_schema(self) -> Schema:
        """The schema of the groups whose trials are limited, such as protection groups."""
        return self.protect.coarse(self.schema)

    @property
    def pooled(self) -> tuple[str, ...]:
        """The columns that protection groups pool over; none without protection groups."""
        return self.protect.names

    @property
    def resources(self) -> dict[str, Resource]:
        """The data, the groups with their records and trials, and the margins, where there are."""
        counts = () if self.cell_count is None else (self.cell_count,)
        columns, coarse = [*self.schema.columns, *map(_whole, counts)], self.group_schema.public
        found = {DATA: Resource(self.data_files, columns, counts)}
        if self.group_files is not None:
            columns = [*coarse, *map(_whole, self.count_names)]
            found[GROUPS] = Resource(self.group_files, columns, self.count_names)
        used = {name for table in self.margins.tables for name in table.columns}
        table, count = self.margins.names
        public = [column for column in coarse if column.name in used]
        columns = [Column(table, Kind.STRING), *public, self.schema.sensitive, _whole(count)]
        found[MARGINS] = Resource(self.margins.files, columns, self.margins.names)
        return {name: one for name, one in found.items() if one.files.names}

    def policy_as_dict(self) -> dict[str, Any]:
        """The policy as plain values; defaults of what counts as exposed are left out."""
        said = self.policy.as_dict()
        names = ["retention", "tolerance", "doubt", "bound", "sampling"]
        if self.policy.unattainable != "refuse":
            names.append("unattainable")
        plain = {name: said[name] for name in names} | self.policy.exposure_as_dict()
        flags = {"news_only": self.news_only, ONE_ROW: self.one_row_per_person}
        return plain | {name: True for name, flag in flags.items() if flag}

    def promise_as_dict(self) -> dict[str, Any]:
        """All that the promise of the release follows from."""
        return self.policy_as_dict() | self.extent_as_dict()

    def extent_as_dict(self) -> dict[str, Any]:
        """What is published beside records, and what trials are limited per, as plain values."""
        return sections(margins=self.margins, protect=self.protect)

    # --- writing ----------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The manifest as readable JSON."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """The Data Package descriptor.

        It keeps the names that the fields of a policy had first, or the bytes of releases would
        change and older versions could not read them.
        """
        resources = []
        for name, (files, columns, added) in self.resources.items():
            schema = self.schema if name == DATA else self.group_schema
            fields = [
                {"name": column.name, "type": column.kind.value}
                if column.name in added
                else self._field(column, schema)
                for column in columns
            ]
            resources.append(files.as_dict(name, self.file_format, fields))
        return {"$schema": _PROFILE, "resources": resources, BLOCK: stored(self.block())}

    def block(self) -> dict[str, Any]:
        """What a Data Package has no words for."""
        said = self.policy.as_dict()
        block: dict[str, Any] = {
            "format_version": self.format_version,
            "created_by": self.created_by,
            "method": self.method,
            **{name: said[name] for name in _POLICY},
            "sensitive": self.schema.sensitive.name,
            "domain": [json_value(value) for value in self.schema.domain],
            "public": [column.name for column in self.schema.public],
            "records": self.records,
            "test_key": self.test_key,
        }
        if self.schema.recodings:
            block["recoded"] = {one.column: one.as_dict() for one in self.schema.recodings}
        if self.group_files is not None:
            block["group_counts"] = dict(zip(_COUNT_NAMES, self.count_names, strict=True))
        if self.cell_count is not None:
            block["cell_count"] = self.cell_count
        return block | self.extent_as_dict() | self.policy_as_dict()

    def _field(self, column: Column, schema: Schema) -> dict[str, Any]:
        """A column in the terms of Table Schema; the sensitive one lists its domain."""
        described: dict[str, Any] = {"name": column.name, "type": column.kind.value}
        recoding, labels = schema.recoding(column.name), self.labels.get(column.name)
        if recoding is not None:
            described |= {"categories": list(recoding.labels), "categoriesOrdered": True}
        elif column.kind is Kind.DECIMAL:
            # Table Schema knows one kind of number; a property of our own tells ours apart.
            described |= {"type": "number", "reconpriv:kind": column.kind.value}
        elif column == schema.sensitive and _can_be_listed(schema):
            described["categories"] = [json_value(value) for value in schema.domain]
        if labels and schema is not self.schema and column.name in self.pooled:
            labels = ColumnLabels(labels.title)  # a coarsened column has values of its own
        return describe_field(described, labels)

    # --- reading ----------------------------------------------------------------------------------

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read and check the manifest of a release folder."""
        if is_database_url(folder):
            raise ReleaseError(
                "A release is opened from its folder, not from a database.",
                hint="Give the folder of a release.",
            )
        if not os.path.exists(folder):
            raise MissingFileError(f"There is no release folder {shown_path(folder)}.")
        try:
            manifest = parsed_json((folder / MANIFEST).read_text(encoding="utf-8"))
            block = manifest[BLOCK]
        except (OSError, ValueError, KeyError, TypeError):
            if folder.is_file() and zipfile.is_zipfile(folder):
                raise ReleaseError(
                    f"{shown_path(folder)} is a zip file, and a release is a folder.",
                    hint="Unzip it and give the folder with the datapackage.json.",
                ) from None
            raise ReleaseError(
                f"{shown_path(folder)} is not a release: it has no {MANIFEST} with a reconpriv"
                " block.",
                hint="Give the folder of a release.",
            ) from None
        version = block.get("format_version") if isinstance(block, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ReleaseError(f"The manifest of {shown_path(folder)} has no format version.")
        if version > FORMAT_VERSION:
            raise ReleaseError(
                f"The release has format version {version}; this reconpriv ({__version__}) reads up"
                f" to {FORMAT_VERSION}.",
                hint="Install a newer reconpriv.",
            )
        try:
            return cls.from_dict(manifest)
        except (KeyError, TypeError, ValueError, IndexError):
            raise ReleaseError(
                f"The manifest of {shown_path(folder)} is damaged.", hint="Fetch the release again."
            ) from None

    @classmethod
    def from_dict(cls, manifest: Mapping[str, Any]) -> Self:
        """Check and type a descriptor; a ValueError, KeyError or TypeError if it is damaged."""
        block = manifest[BLOCK]
        resources = {resource["name"]: resource for resource in manifest["resources"]}
        fields = {one["name"]: one for one in resources["data"]["schema"]["fields"]}
        columns = {
            name: Column(name, Kind(one.get("reconpriv:kind", one["type"])))
            for name, one in fields.items()
        }
        sensitive = columns[block["sensitive"]]
        domain = tuple(parse_value(sensitive, value) for value in block["domain"])
        harmless = tuple(parse_value(sensitive, value) for value in block.get("harmless", ()))
        if len(domain) < 2 or not set(harmless) < set(domain):
            raise ValueError
        schema = Schema(
            tuple(columns[name] for name in block["public"]),
            sensitive,
            domain,
            recodings=_recodings(block.get("recoded", {}), columns, fields),
        )
        margins, protect = _margins(block, resources), _protect(block)
        policy = Policy.as_read(
            schema,
            retention=as_number(block["retention"]),
            # As they are stored; see as_dict.
            tolerance=as_number(block["epsilon"]),
            doubt=as_number(block["delta"]),
            bound=named_bound(as_text(block["bound"])),
            margins=margins.wanted,
            protect=protect.wanted,
            sampling=block["sample_size"],
            unattainable=block.get("unattainable", "refuse"),
            exposed_above=as_number(block.get("exposed_above", 0.0)),
            harmless=harmless,
        )
        names = block.get("group_counts", dict(zip(_COUNT_NAMES, _COUNT_NAMES, strict=True)))
        labels = {name: read_labels(one, columns[name]) for name, one in fields.items()}
        found = cls(
            schema=schema,
            policy=policy,
            method=block.get("method", policy.sampling_rule.method),
            created_by=as_text(block["created_by"]),
            records=as_count(block["records"]),
            test_key=bool(block.get("test_key")),
            file_format=resources["data"]["format"],
            data_files=Files.from_dict(resources["data"]),
            group_files=Files.from_dict(resources["groups"])
            if policy.sampling_rule.trials_public
            else None,
            count_names=(names["records"], names["trials"]),
            cell_count=block.get("cell_count"),
            labels={name: said for name, said in labels.items() if said is not None},
            margins=margins,
            protect=protect,
            one_row_per_person=block.get(ONE_ROW, False) is True,
            news_only=block.get("news_only", False) is True,
        )
        recoded = found.schema.recoding(sensitive.name)
        known = tuple(value for value in domain if value is not None)
        if recoded is not None and known != recoded.labels:
            raise ValueError
        if block["format_version"] != found.format_version:
            raise ValueError
        return replace(found, unknown=tuple(sorted(_unknown(manifest, found.as_dict()))))


def resource_names(text: str) -> set[str]:
    """What a manifest of any version calls its resources; empty if it is not one of ours."""
    try:
        manifest = parsed_json(text)
        names = {resource["name"] for resource in manifest["resources"]}
        return names if isinstance(manifest[BLOCK], dict) else set()
    except (ValueError, KeyError, TypeError):
        return set()


def _recodings(
    said: Any, columns: Mapping[str, Column], fields: Mapping[str, Any]
) -> tuple[Recoding, ...]:
    """What recoded columns stand for; it must agree with their fields."""
    if not isinstance(said, dict):
        raise ValueError
    found = tuple(read_recoding(name, entry) for name, entry in said.items())
    for one in found:
        listed = fields[one.column]["categories"]
        if columns[one.column].kind is not Kind.STRING or listed != list(one.labels):
            raise ValueError
    return found


def _margins(block: Mapping[str, Any], resources: Mapping[str, Any]) -> DescribedMargins:
    """The margins, if there are any; their columns must be public ones."""
    if "margins" not in block:
        return NO_MARGIN_FILES
    found = DescribedMargins.from_dict(block["margins"], Files.from_dict(resources["margins"]))
    ignored = {name for name, recoding in _protect(block).columns if recoding is None}
    public = set(block["public"]) - ignored
    if not all(name in public for table in found.tables for name in table.columns):
        raise ValueError
    return found


def _protect(block: Mapping[str, Any]) -> Coarsening:
    """How protection groups are made, if there are any."""
    if "protect" not in block:
        return NO_COARSENING
    return Coarsening.from_dict(block["protect"], block["public"])


def _whole(name: str) -> Column:
    """A column of counts."""
    return Column(name, Kind.INTEGER)


def _can_be_listed(schema: Schema) -> bool:
    """True if the domain can be categories: text or whole numbers, none missing."""
    return schema.sensitive.kind in (Kind.STRING, Kind.INTEGER) and None not in schema.domain


def _unknown(found: Any, known: Any) -> set[str]:
    """The names in a descriptor that ours would not have in the same place."""
    if isinstance(found, list):
        ours = known[: len(found)] if isinstance(known, list) else []
        return set[str]().union(*(_unknown(*pair) for pair in zip_longest(found, ours)))
    if not isinstance(found, dict):
        return set()
    strange = {name for name in found if not isinstance(known, dict) or name not in known}
    return strange.union(*(_unknown(found[name], known[name]) for name in found.keys() - strange))
