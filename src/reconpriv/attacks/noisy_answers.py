"""Noisy answers under λ-differential privacy, from a real library: OpenDP."""

from __future__ import annotations

import numpy as np

from reconpriv.extras import needs
from reconpriv.theory.arrays import Floats


def require_opendp() -> None:
    """Refuse, and say how to install it, if the package opendp is missing."""
    with needs("attacks", "Noisy answers need the package opendp."):
        import opendp.measurements  # noqa: F401, PLC0415 - an extra


def noisy_answers(count: float, privacy: float, draws: int) -> Floats:
    """A count answered repeatedly by OpenDP's Laplace mechanism with b = 1/λ."""
    require_opendp()
    # Not from its prelude, which imports scikit-learn: ten times as slow.
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.measurements import make_laplace  # noqa: PLC0415
    from opendp.metrics import l1_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    domain = vector_domain(atom_domain(T=float, nan=False))
    mechanism = make_laplace(domain, l1_distance(T=float), scale=1.0 / privacy)
    return np.asarray(mechanism([float(count)] * draws))
