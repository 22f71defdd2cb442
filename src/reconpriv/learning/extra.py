"""The one thing that the extra ``learn`` installs."""

from __future__ import annotations

from importlib.util import find_spec

from reconpriv.errors import InputError
from reconpriv.extras import install_hint


def require_scikit_learn() -> None:
    """Say how to install scikit-learn if it is missing."""
    if find_spec("sklearn") is None:
        raise InputError(
            "The classifier needs the package scikit-learn.", hint=install_hint("learn")
        )
