"""A release on disk: a folder with data, groups and a Data Package manifest.

Everything in it is derived from the published table or from the policy. Never in it: the key,
a frequency, an s_g, a raw count, or where the table came from.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconpriv._version import __version__
from reconpriv.engines.base import Written, WrittenFile
from reconpriv.errors import OutputError, ReconprivError
from reconpriv.policy import Policy
from reconpriv.schema import Column, Kind, Schema, json_value

MANIFEST = "datapackage.json"
FORMAT_VERSION = 1

_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
_METHODS = {
    "none": "uniform perturbation",
    "paper": "sampling, perturbing, scaling (Algorithm 1)",
    "octave": "sampling, perturbing, scaling with trial counts by octave of the largest frequency",
    "public": "sampling, perturbing, scaling with trial counts that depend on group size alone",
}


@dataclass(frozen=True)
class Release:
    """A release and, where it was just made, the totals that stay with its publisher."""

    path: Path
    manifest: dict[str, Any]
    written: Written | None = None
    warnings: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records are published."""
        return int(self.manifest["reconpriv"]["records"])

    def as_dict(self) -> dict[str, Any]:
        """The publisher's summary, for JSON."""
        summary: dict[str, Any] = {"release": str(self.path), "records": self.records}
        if self.written is not None:
            summary |= {
                "groups": self.written.groups,
                "sampled_groups": self.written.sampled_groups,
                "trials": self.written.trials,
                "unattainable_groups": self.written.unattainable_groups,
                "unattainable_records": self.written.unattainable_records,
            }
        return summary | {
            "policy": {
                name: self.manifest["reconpriv"][name]
                for name in ("retention", "epsilon", "delta", "bound", "sample_size")
            },
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        """The summary as text."""
        from reconpriv.render import release_text  # noqa: PLC0415 - rich only where it is shown

        return release_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from reconpriv.render import release_html  # noqa: PLC0415

        return release_html(self)


def build_manifest(
    schema: Schema,
    policy: Policy,
    written: Written,
    *,
    file_format: str,
    count_names: tuple[str, str],
    test_key: bool,
) -> dict[str, Any]:
    """The Data Package (v2) descriptor with its ``reconpriv`` block."""
    sensitive = _field(schema.sensitive)
    if None not in schema.domain and schema.sensitive.kind in (Kind.STRING, Kind.INTEGER):
        sensitive["categories"] = [json_value(value) for value in schema.domain]
    fields = [_field(column) for column in schema.public]
    resources = [_resource("data", written.data, file_format, [*fields, sensitive])]
    if written.groups_file is not None:
        counts = [{"name": name, "type": "integer"} for name in count_names]
        resources.append(_resource("groups", written.groups_file, file_format, fields + counts))
    block: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "created_by": f"reconpriv {__version__}",
        "method": _METHODS[policy.sample_size],
        "sample_size": policy.sample_size,
        "retention": policy.retention,
        "epsilon": policy.epsilon,
        "delta": policy.delta,
        "bound": policy.tail_bound.name,
        "sensitive": schema.sensitive.name,
        "domain": [json_value(value) for value in schema.domain],
        "public": [column.name for column in schema.public],
        "records": written.records,
        "test_key": test_key,
    }
    if written.groups_file is not None:
        block["group_counts"] = dict(zip(("records", "trials"), count_names, strict=True))
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "resources": resources,
        "reconpriv": block,
    }


def _field(column: Column) -> dict[str, Any]:
    kind = "number" if column.kind is Kind.DECIMAL else column.kind.value
    return {"name": column.name, "type": kind}


def _resource(
    name: str, file: WrittenFile, file_format: str, fields: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "name": name,
        "type": "table",
        "path": file.name,
        "format": file_format,
        "mediatype": _MEDIA_TYPES[file_format],
        "bytes": file.bytes,
        "hash": f"sha256:{file.sha256}",
        "rows": file.rows,
        "schema": {"fields": fields},
    }


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest as readable JSON."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def is_release(folder: Path) -> bool:
    """Whether a folder holds a release (a manifest with our block)."""
    try:
        return "reconpriv" in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside the target that takes its place when whole, or vanishes."""
    check_target(target, overwrite=overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {error.strerror}.") from None
    try:
        yield work
        work.chmod(0o755 & ~_umask())
        _replace(work, target)
    except ReconprivError:
        raise
    except OSError as error:
        reason = error.strerror or str(error).rsplit("] ", 1)[-1].split(". Detail", 1)[0]
        raise OutputError(
            f"The release could not be written: {reason.strip().rstrip('.')}.",
            hint="Nothing was left behind.",
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse to write over anything that is not a release, or without being told to."""
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise OutputError(f"{target} exists already.", hint="Use --overwrite to replace a release.")
    empty = target.is_dir() and not any(target.iterdir())
    if target.is_symlink() or not (empty or is_release(target)):
        raise OutputError(
            f"{target} exists and is not a release; it will not be replaced.",
            hint="Choose another name, or remove it yourself.",
        )


def _replace(work: Path, target: Path) -> None:
    if not target.exists():
        work.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    target.rename(old / "release")
    try:
        work.rename(target)
    except BaseException:
        (old / "release").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
