"""Uniform perturbation (Eq. 1) and what its retention probability p promises per record."""

from __future__ import annotations

import math

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.messages.shares import check_share, got
from reconpriv.theory.arrays import Floats

# The default belief before publication; the paper's example in section 6.2.
PRIOR = 0.1


LEAST_RETENTION = 1e-9  # the variance of an estimate grows with 1/p²
_LARGEST_DOMAIN = 10**12


def check_retention(retention: float) -> float:
    """Return p if 0 < p < 1, as section 3.1 requires; refuse anything else."""
    hint = "p = 0.5 keeps half of the sensitive values."
    check_share(retention, "The retention probability p", hint=hint)
    if retention < LEAST_RETENTION:
        raise PolicyError(
            f"A retention probability p below {LEAST_RETENTION:g} leaves nothing to estimate; got"
            f" {retention:g}.",
            hint=hint,
        )
    return float(retention)


def check_domain_size(domain_size: int) -> int:
    """Return m if m >= 2; with one value there is nothing to hide or to learn."""
    if domain_size < 2:
        raise PolicyError(
            f"The sensitive domain needs at least two values; got {domain_size}.",
            hint="Declare the full domain if the table shows only part of it.",
        )
    if domain_size > _LARGEST_DOMAIN:
        raise PolicyError(f"A sensitive domain has at most {_LARGEST_DOMAIN:,} values.")
    return int(domain_size)


def replacement_probability(retention: float, domain_size: int) -> float:
    """t = (1-p)/m: the probability of any one other value (Eq. 1, j != i)."""
    return (1.0 - retention) / domain_size


def keep_probability(retention: float, domain_size: int) -> float:
    """r = p + (1-p)/m: retained, or replaced by itself (Eq. 1, j = i)."""
    return retention + replacement_probability(retention, domain_size)


def perturbation_matrix(retention: float, domain_size: int) -> Floats:
    """The matrix P of Eq. 1; column i is the distribution of a perturbed x_i."""
    check_retention(retention)
    m = check_domain_size(domain_size)
    return retention * np.eye(m) + replacement_probability(retention, m)


def amplification(rho1: float, rho2: float) -> float:
    """γ = ρ2 (1-ρ1) / (ρ1 (1-ρ2)) of ρ1-ρ2 privacy (section 6.2)."""
    if not 0 < rho1 < rho2 < 1:
        wrong = next((rho for rho in (rho1, rho2) if rho > 1), None)
        given = f"got ρ1 = {rho1:g}, ρ2 = {rho2:g}." if wrong is None else got(wrong)
        raise PolicyError(
            f"ρ1-ρ2 privacy needs 0 < ρ1 < ρ2 < 1; {given}",
            hint="ρ1 is the belief before, ρ2 the largest belief allowed after.",
        )
    before = rho1 * (1 - rho2)
    return rho2 * (1 - rho1) / before if before > 0 else math.inf


def retention_for_privacy(rho1: float, rho2: float, domain_size: int) -> float:
    """The largest p with ρ1-ρ2 privacy: (γ-1)/(m-1+γ) (section 6.2)."""
    m = check_domain_size(domain_size)
    gamma = amplification(rho1, rho2)
    retention = (gamma - 1) / (m - 1 + gamma) if math.isfinite(gamma) else 1.0
    if not 0 < retention < 1:
        raise PolicyError(
            f"ρ1 = {rho1:g} and ρ2 = {rho2:g} are too far apart, or too close: p would be"
            f" {retention:g}.",
            hint="Any p below 1 gives this privacy, or none does; choose another ρ1 or ρ2.",
        )
    return retention


def posterior_limit(retention: float, domain_size: int, rho1: float) -> float:
    """The largest posterior ρ2 that p allows for a prior of at most ρ1 (inverse of the above)."""
    check_share(rho1, "The prior ρ1")
    odds = math.exp(local_privacy_level(retention, domain_size)) * rho1 / (1 - rho1)
    return odds / (1 + odds)


def local_privacy_level(retention: float, domain_size: int) -> float:
    """The ε of local differential privacy that one perturbed value provides: ln(r/t)."""
    check_retention(retention)
    return math.log1p(retention * check_domain_size(domain_size) / (1 - retention))
