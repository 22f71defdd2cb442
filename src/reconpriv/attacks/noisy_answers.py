"""Noisy answers under λ-differential privacy, from a real library: OpenDP."""

from __future__ import annotations

from typing import Any

import numpy as np

from reconpriv.errors import InputError
from reconpriv.extras import install_hint
from reconpriv.theory.arrays import Floats


def require_opendp() -> Any:
    """The package opendp, or an error that says how to install it."""
    try:
        import opendp.prelude as dp  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(
            "Noisy answers need the package opendp.",
            hint=install_hint("attacks"),
        ) from None
    return dp


def noisy_answers(count: float, privacy: float, draws: int) -> Floats:
    """A count answered repeatedly by OpenDP's Laplace mechanism with b = 1/λ."""
    dp = require_opendp()
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0 / privacy)
    return np.asarray(mechanism([float(count)] * draws))
