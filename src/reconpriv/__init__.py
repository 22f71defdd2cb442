"""reconpriv: publish a table with one sensitive column so that groups resist reconstruction.

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconpriv._version import __version__

if TYPE_CHECKING:
    from reconpriv.auditing import AuditReport as AuditReport
    from reconpriv.column import Frequencies as Frequencies
    from reconpriv.column import perturb as perturb
    from reconpriv.column import reconstruct as reconstruct
    from reconpriv.datasets import dataset_path as dataset_path
    from reconpriv.errors import ReconprivError as ReconprivError
    from reconpriv.errors import ReconprivWarning as ReconprivWarning
    from reconpriv.frames import audit as audit
    from reconpriv.frames import publish as publish
    from reconpriv.policy import Policy as Policy
    from reconpriv.queries.estimate import Estimate as Estimate
    from reconpriv.randomness import Key as Key
    from reconpriv.reading import read as read
    from reconpriv.recoding import Quantiles as Quantiles
    from reconpriv.release import Release as Release
    from reconpriv.release import open_release as open  # noqa: F401
    from reconpriv.summary import TableSummary as TableSummary
    from reconpriv.summary import describe as describe
    from reconpriv.table import Table as Table
    from reconpriv.theory.bounds import Bound as Bound
    from reconpriv.theory.bounds import Tails as Tails
    from reconpriv.theory.counts import ObservedCount as ObservedCount
    from reconpriv.tuning.report import TuneReport as TuneReport

_HOMES = {
    "AuditReport": "auditing",
    "Bound": "theory.bounds",
    "Estimate": "queries.estimate",
    "Frequencies": "column",
    "Key": "randomness",
    "ObservedCount": "theory.counts",
    "Policy": "policy",
    "Quantiles": "recoding",
    "ReconprivError": "errors",
    "ReconprivWarning": "errors",
    "Release": "release",
    "Table": "table",
    "TableSummary": "summary",
    "Tails": "theory.bounds",
    "TuneReport": "tuning.report",
    "audit": "frames",
    "dataset_path": "datasets",
    "describe": "summary",
    "open": "release",
    "perturb": "column",
    "publish": "frames",
    "read": "reading",
    "reconstruct": "column",
}

_NAMES = {"open": "open_release"}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"reconpriv.{_HOMES[name]}"), _NAMES.get(name, name))
    raise AttributeError(f"module 'reconpriv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
