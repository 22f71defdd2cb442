"""reconpriv: publish a table with one sensitive column so that groups resist reconstruction.

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconpriv._version import __version__

if TYPE_CHECKING:
    from reconpriv.core.audit_report import AuditReport as AuditReport
    from reconpriv.core.margins import Margins as Margins
    from reconpriv.core.pram import PramMatrix as PramMatrix
    from reconpriv.core.randomness import Key as Key
    from reconpriv.datasets import dataset_path as dataset_path
    from reconpriv.declared_bins import Quantiles as Quantiles
    from reconpriv.errors import ReconprivError as ReconprivError
    from reconpriv.errors import ReconprivWarning as ReconprivWarning
    from reconpriv.frames import audit as audit
    from reconpriv.frames import publish as publish
    from reconpriv.ledger.ledger import Ledger as Ledger
    from reconpriv.policy import Policy as Policy
    from reconpriv.presets import PRESETS as PRESETS
    from reconpriv.presets import preset as preset
    from reconpriv.proposals import Proposals as Proposals
    from reconpriv.queries.estimate import Estimate as Estimate
    from reconpriv.randomised_response import Frequencies as Frequencies
    from reconpriv.randomised_response import invariant_matrix as invariant_matrix
    from reconpriv.randomised_response import perturb as perturb
    from reconpriv.randomised_response import pram_matrix as pram_matrix
    from reconpriv.randomised_response import reconstruct as reconstruct
    from reconpriv.reading import propose_roles as propose_roles
    from reconpriv.reading import read as read
    from reconpriv.release.release import Release as Release
    from reconpriv.release.release import open_release as open  # noqa: F401
    from reconpriv.summary import TableSummary as TableSummary
    from reconpriv.summary import describe as describe
    from reconpriv.table import Table as Table
    from reconpriv.theory.bounds import Bound as Bound
    from reconpriv.theory.bounds import Tails as Tails
    from reconpriv.theory.counts import ObservedCount as ObservedCount
    from reconpriv.tuning.report import TuneReport as TuneReport

_HOMES = {
    "AuditReport": "core.audit_report",
    "Bound": "theory.bounds",
    "Estimate": "queries.estimate",
    "Frequencies": "randomised_response",
    "Key": "core.randomness",
    "Ledger": "ledger.ledger",
    "Margins": "core.margins",
    "ObservedCount": "theory.counts",
    "PRESETS": "presets",
    "Policy": "policy",
    "PramMatrix": "core.pram",
    "Proposals": "proposals",
    "Quantiles": "declared_bins",
    "ReconprivError": "errors",
    "ReconprivWarning": "errors",
    "Release": "release.release",
    "Table": "table",
    "TableSummary": "summary",
    "Tails": "theory.bounds",
    "TuneReport": "tuning.report",
    "audit": "frames",
    "dataset_path": "datasets",
    "describe": "summary",
    "invariant_matrix": "randomised_response",
    "open": "release.release",
    "preset": "presets",
    "perturb": "randomised_response",
    "pram_matrix": "randomised_response",
    "propose_roles": "reading",
    "publish": "frames",
    "read": "reading",
    "reconstruct": "randomised_response",
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
