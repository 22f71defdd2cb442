"""The manifest of a release: a Data Package (v2) descriptor with a ``reconpriv`` block.

Everything in it is derived from the published table or from the policy, or is a label that the
publisher's file gives a published column. Never in it: the key, a frequency, an s_g, a raw count,
or where the table came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconpriv._version import __version__
from reconpriv.engines.base import Layout, Written, WrittenFile
from reconpriv.errors import MissingFileError, ReleaseError
from reconpriv.messages.redaction import shown_path
from reconpriv.policy import SAMPLE_SIZES, Policy
from reconpriv.recoding import Recoding, read_recoding
from reconpriv.release.labels import describe_field, read_labels
from reconpriv.schema import Column, ColumnLabels, Kind, Schema, Value, json_value, parse_value
from reconpriv.sources.databases.url import is_database_url

MANIFEST = "datapackage.json"
FORMAT_VERSION = 2  # the newest that is read
PLAIN_VERSION = 1  # of a release without recoded columns, which older readers understand

_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
_METHODS = {
    "none": "uniform perturbation",
    "paper": "sampling, perturbing, scaling (Algorithm 1)",
    "octave": "sampling, perturbing, scaling with trial counts by octave of the largest frequency",
    "public": "sampling, perturbing, scaling with trial counts that depend on group size alone",
}


def build_manifest(
    schema: Schema,
    policy: Policy,
    written: Written,
    *,
    layout: Layout,
    count_names: tuple[str, str],
    cell_count_name: str,
    test_key: bool,
    labels: Mapping[str, ColumnLabels],
    published: Mapping[str, Sequence[Value]],
) -> dict[str, Any]:
    """The Data Package (v2) descriptor with its ``reconpriv`` block.

    ``labels`` are those of the source, ``published`` the values of labelled public columns.
    """
    sensitive = _sensitive_field(schema, labels.get(schema.sensitive.name))
    fields = [
        describe_field(_field(c, schema), c, labels.get(c.name), published.get(c.name, ()))
        for c in schema.public
    ]
    cell_count = [{"name": cell_count_name, "type": "integer"}] if layout.cells else []
    file_format = layout.file_format
    resources = [_resource("data", written.data, file_format, [*fields, sensitive, *cell_count])]
    if layout.with_trials:
        counts = [{"name": name, "type": "integer"} for name in count_names]
        resources.append(_resource("groups", written.groups_files, file_format, fields + counts))
    block: dict[str, Any] = {
        "format_version": FORMAT_VERSION if schema.recodings else PLAIN_VERSION,
        "created_by": f"reconpriv {__version__}",
        "method": _METHODS[policy.sample_size],
        "sample_size": policy.sample_size,
        "retention": policy.retention,
        "epsilon": policy.epsilon,
        "delta": policy.delta,
        "bound": policy.tail_bound.name,
        "unattainable": policy.unattainable,
        "sensitive": schema.sensitive.name,
        "domain": [json_value(value) for value in schema.domain],
        "public": [column.name for column in schema.public],
        "records": written.records,
        "test_key": test_key,
    }
    if schema.recodings:
        block["recoded"] = {one.column: one.as_dict() for one in schema.recodings}
    if layout.with_trials:
        block["group_counts"] = dict(zip(("records", "trials"), count_names, strict=True))
    if layout.cells:
        block["cell_count"] = cell_count_name
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "resources": resources,
        "reconpriv": block,
    }


def _field(column: Column, schema: Schema) -> dict[str, Any]:
    recoding = schema.recoding(column.name)
    if recoding is not None:
        ordered = {"categories": list(recoding.labels), "categoriesOrdered": True}
        return {"name": column.name, "type": column.kind.value, **ordered}
    # Table Schema knows one kind of number; ours are told apart by a property of our own.
    if column.kind is Kind.DECIMAL:
        return {"name": column.name, "type": "number", "reconpriv:kind": Kind.DECIMAL.value}
    return {"name": column.name, "type": column.kind.value}


def _sensitive_field(schema: Schema, said: ColumnLabels | None) -> dict[str, Any]:
    """The sensitive field: its categories are the domain, whatever else has a label."""
    column, known = schema.sensitive, [value for value in schema.domain if value is not None]
    described = _field(column, schema)
    if len(known) == len(schema.domain) and column.kind in (Kind.STRING, Kind.INTEGER):
        described["categories"] = [json_value(value) for value in schema.domain]
    if said is not None:
        values = tuple((value, text) for value, text in said.values if value in set(known))
        describe_field(described, column, ColumnLabels(said.title, values), known)
    return described


def _resource(
    name: str, files: tuple[WrittenFile, ...], file_format: str, fields: list[dict[str, Any]]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": name,
        "type": "table",
        "path": files[0].name if len(files) == 1 else [file.name for file in files],
        "format": file_format,
        "mediatype": _MEDIA_TYPES[file_format],
        "bytes": sum(file.bytes for file in files),
        "rows": sum(file.rows for file in files),
        "schema": {"fields": fields},
    }
    # A Data Package knows one hash a resource; a resource of several files has a list of ours.
    hashes = [f"sha256:{file.sha256}" for file in files]
    return described | ({"hash": hashes[0]} if len(files) == 1 else {"reconpriv:hashes": hashes})


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest as readable JSON."""
    (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")


def manifest_text(manifest: dict[str, Any]) -> str:
    """The manifest as readable JSON."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Description:
    """What a manifest says, checked and typed."""

    folder: Path
    manifest: dict[str, Any]
    schema: Schema
    retention: float
    sample_size: str
    file_format: str
    data: tuple[Path, ...]
    groups: tuple[Path, ...]
    count_names: tuple[str, str]
    cell_count: str | None
    labels: dict[str, ColumnLabels] = field(default_factory=dict)


def read_manifest(folder: Path) -> Description:
    """Read and check the manifest of a release folder."""
    if is_database_url(folder):
        raise ReleaseError(
            "A release is opened from its folder, not from a database.",
            hint="Give the folder of a release.",
        )
    if not folder.exists():
        raise MissingFileError(f"There is no release folder {shown_path(folder)}.")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        block = manifest["reconpriv"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ReleaseError(
            f"{shown_path(folder)} is not a release: it has no {MANIFEST} with a reconpriv block.",
            hint="Give the folder of a release.",
        ) from None
    version = block.get("format_version") if isinstance(block, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ReleaseError(f"The manifest of {shown_path(folder)} has no format version.")
    if version > FORMAT_VERSION:
        raise ReleaseError(
            f"The release has format version {version}; this reconpriv ({__version__}) reads up to"
            f" {FORMAT_VERSION}.",
            hint="Install a newer reconpriv.",
        )
    try:
        return _describe(folder, manifest, block)
    except (KeyError, TypeError, ValueError, IndexError):
        raise ReleaseError(
            f"The manifest of {shown_path(folder)} is damaged.", hint="Fetch the release again."
        ) from None


def _describe(folder: Path, manifest: dict[str, Any], block: dict[str, Any]) -> Description:
    resources = {resource["name"]: resource for resource in manifest["resources"]}
    columns = {column.name: column for column, _ in _fields(manifest)}
    sensitive = columns[block["sensitive"]]
    domain: tuple[Value, ...] = tuple(parse_value(sensitive, v) for v in block["domain"])
    public = tuple(columns[name] for name in block["public"])
    schema = Schema(public, sensitive, domain, recodings=_recodings(manifest, block, domain))
    retention, sample_size = float(block["retention"]), block["sample_size"]
    if not 0 < retention < 1 or len(domain) < 2 or sample_size not in SAMPLE_SIZES:
        raise ValueError
    if not 0 < float(block["delta"]) < 1 or not float(block["epsilon"]) > 0:
        raise ValueError
    whole = [block["records"], *(resource["rows"] for resource in manifest["resources"])]
    hashes = [digest for resource in manifest["resources"] for _, digest in _hashes(resource)]
    texts = [block["bound"], block["created_by"], *hashes]
    if not all(type(count) is int and count >= 0 for count in whole):
        raise ValueError
    if not all(isinstance(text, str) for text in texts):
        raise ValueError
    names = block.get("group_counts", {"records": "records", "trials": "trials"})
    with_groups = sample_size in ("octave", "public")
    return Description(
        folder=folder,
        manifest=manifest,
        schema=schema,
        retention=retention,
        sample_size=sample_size,
        file_format=resources["data"]["format"],
        data=tuple(folder / name for name, _ in _hashes(resources["data"])),
        groups=tuple(folder / name for name, _ in _hashes(resources["groups"]))
        if with_groups
        else (),
        count_names=(names["records"], names["trials"]),
        cell_count=block.get("cell_count"),
        labels=manifest_labels(manifest),
    )


def _recodings(
    manifest: dict[str, Any], block: dict[str, Any], domain: tuple[Value, ...]
) -> tuple[Recoding, ...]:
    """What recoded columns stand for; it must agree with what else is said of them."""
    said = block.get("recoded", {})
    if not isinstance(said, dict) or bool(said) != (block["format_version"] > PLAIN_VERSION):
        raise ValueError
    fields = {column.name: (column, one) for column, one in _fields(manifest)}
    found = []
    for name, entry in said.items():
        recoding = read_recoding(name, entry)
        column, one = fields[name]
        if column.kind is not Kind.STRING or one["categories"] != list(recoding.labels):
            raise ValueError
        known = tuple(value for value in domain if value is not None)
        if name == block["sensitive"] and known != recoding.labels:
            raise ValueError
        found.append(recoding)
    return tuple(found)


def _fields(manifest: dict[str, Any]) -> list[tuple[Column, dict[str, Any]]]:
    """The columns of the data with what is said about them."""
    resources = {resource["name"]: resource for resource in manifest["resources"]}
    fields = resources["data"]["schema"]["fields"]
    kinds = [Kind(one.get("reconpriv:kind", one["type"])) for one in fields]
    return [(Column(one["name"], kind), one) for one, kind in zip(fields, kinds, strict=True)]


def manifest_labels(manifest: dict[str, Any]) -> dict[str, ColumnLabels]:
    """What a manifest says that its columns and their values are called."""
    said = {column.name: read_labels(one, column) for column, one in _fields(manifest)}
    return {name: labels for name, labels in said.items() if labels is not None}


def _hashes(resource: dict[str, Any]) -> list[tuple[str, str]]:
    """The files of a resource with their hashes; only names count, so none lies elsewhere."""
    path = resource["path"]
    paths = [path] if isinstance(path, str) else path
    hashes = [resource["hash"]] if isinstance(path, str) else resource["reconpriv:hashes"]
    if not paths or resource["format"] not in _MEDIA_TYPES:
        raise ValueError
    return [(Path(one).name, digest) for one, digest in zip(paths, hashes, strict=True)]


def check_files(description: Description) -> None:
    """Compare every file with its hash; a release that was touched is refused."""
    files = [one for resource in description.manifest["resources"] for one in _hashes(resource)]
    for name, expected in files:
        path = description.folder / name
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            raise ReleaseError(f"The release lacks its file {path.name}.") from None
        if f"sha256:{digest}" != expected:
            raise ReleaseError(
                f"The file {path.name} does not match its manifest (hash).",
                hint="It was changed or damaged; fetch the release again.",
            )
