"""reconpriv: publish a table with one sensitive column so that groups resist reconstruction.

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconpriv._version import __version__

if TYPE_CHECKING:
    from reconpriv.auditing.audit_report import AuditReport as AuditReport
    from reconpriv.cells.randomness import Key as Key
    from reconpriv.columns.declared_bins import Quantiles as Quantiles
    from reconpriv.datasets import dataset_path as dataset_path
    from reconpriv.errors import ReconprivError as ReconprivError
    from reconpriv.errors import ReconprivWarning as ReconprivWarning
    from reconpriv.estimate.counts import Estimate as Estimate
    from reconpriv.frames import audit as audit
    from reconpriv.frames import publish as publish
    from reconpriv.ledger.ledger import Ledger as Ledger
    from reconpriv.policy.margin_settings import Margins as Margins
    from reconpriv.policy.policy import Policy as Policy
    from reconpriv.policy.presets import PRESETS as PRESETS
    from reconpriv.policy.presets import preset as preset
    from reconpriv.proposals import Proposals as Proposals
    from reconpriv.randomised_response import Frequencies as Frequencies
    from reconpriv.randomised_response import PramMatrix as PramMatrix
    from reconpriv.randomised_response import invariant_matrix as invariant_matrix
    from reconpriv.randomised_response import perturb as perturb
    from reconpriv.randomised_response import pram_matrix as pram_matrix
    from reconpriv.randomised_response import reconstruct as reconstruct
    from reconpriv.reading import propose_roles as propose_roles
    from reconpriv.reading import read as read
    from reconpriv.release.record import ReviewRecord as ReviewRecord
    from reconpriv.release.release import Release as Release
    from reconpriv.release.release import open_release as open  # noqa: F401
    from reconpriv.summary import TableSummary as TableSummary
    from reconpriv.summary import describe as describe
    from reconpriv.table import Table as Table
    from reconpriv.theory.counts import ObservedCount as ObservedCount
    from reconpriv.theory.tails.bounds import Bound as Bound
    from reconpriv.theory.tails.bounds import Tails as Tails
    from reconpriv.tuning.report import TuneReport as TuneReport

_NAMES_IN = {
    "auditing.audit_report": "AuditReport",
    "cells.randomness": "Key",
    "columns.declared_bins": "Quantiles",
    "datasets": "dataset_path",
    "errors": "ReconprivError ReconprivWarning",
    "estimate.counts": "Estimate",
    "frames": "audit publish",
    "ledger.ledger": "Ledger",
    "policy.margin_settings": "Margins",
    "policy.policy": "Policy",
    "policy.presets": "PRESETS preset",
    "proposals": "Proposals",
    "randomised_response": "Frequencies PramMatrix invariant_matrix perturb pram_matrix"
    " reconstruct",
    "reading": "propose_roles read",
    "release.record": "ReviewRecord",
    "release.release": "Release open",
    "summary": "TableSummary describe",
    "table": "Table",
    "theory.counts": "ObservedCount",
    "theory.tails.bounds": "Bound Tails",
    "tuning.report": "TuneReport",
}
_HOMES = {name: home for home, names in _NAMES_IN.items() for name in names.split()}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        own = "open_release" if name == "open" else name
        return getattr(import_module(f"reconpriv.{_HOMES[name]}"), own)
    raise AttributeError(f"module 'reconpriv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
