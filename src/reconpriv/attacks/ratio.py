"""The ratio attack on differentially private answers (Example 2, section 6.3).

Two counts of one group are answered with Laplace noise of scale 1/λ; their ratio reveals f. The
closed forms are in theory/ratio.py; the noise here comes from OpenDP's own mechanism.
"""

from __future__ import annotations

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.result import AttackResult
from reconpriv.attacks.statistics import rate, relative_error, score
from reconpriv.errors import PolicyError
from reconpriv.extras import needs
from reconpriv.policy.exposure import largest_exposed
from reconpriv.theory.arrays import Floats
from reconpriv.theory.ratio import ratio_tails, smallest_exposed_count

KNEW = "every public value of a person, and the noisy answers to two counts, each λ-private"
_FREQUENCIES = (0.1, 0.25, 0.5, 0.75, 1.0)
_LEAST, _LARGEST = 1e-6, 1e6


def attack_ratio(
    target: AttackedTable, *, privacy: float = 0.1, draws: int = 1_000, worst: int = 5
) -> AttackResult:
    """Ask for each group's size and for the count of its most exposed value."""
    if not _LEAST <= privacy <= _LARGEST:
        raise PolicyError(
            f"λ of the noisy counts must lie between {_LEAST:g} and {_LARGEST:g}; got {privacy:g}.",
            hint="λ = 0.1 is the paper's; smaller adds more noise.",
        )
    tolerance, doubt = target.policy.tolerance, target.policy.doubt
    above, below = group_tails(target, privacy)
    exposed = np.flatnonzero(np.maximum(above, below) < doubt)
    violated = np.flatnonzero(np.minimum(above, below) < doubt)
    inside = 1.0 - above - below
    shown = exposed[np.argsort(-inside[exposed], kind="stable")][: max(worst, 1)]
    smallest = int(np.argmin(target.batch.sizes))
    *errors, control = (
        relative_error(
            simulated_ratios(int(target.batch.sizes[group]), f, privacy, draws), np.full(draws, f)
        )
        for group in (*shown.tolist(), smallest)
        for f in [float(target.frequency[group])]
    )
    near = np.reshape(errors, (shown.size, draws)) <= tolerance
    everywhere = relative_error(target.shares_of_whole, target.frequency)[exposed]
    return AttackResult(
        name="ratio",
        knew=KNEW,
        success=rate(near, "noisy ratios within the tolerance, most exposed groups"),
        baseline=rate(everywhere <= tolerance, "exposed groups whose f the whole table predicts"),
        control=rate(
            control <= tolerance, "the same in the smallest group, which the noise must hide"
        ),
        figures={
            "λ": privacy,
            "groups": target.batch.groups,
            "groups violated as the paper says (a tail under the doubt)": violated.size,
            "groups exposed (both tails under the doubt)": exposed.size,
            "records in the latter": target.batch.sizes[exposed].sum(),
            "draws for each shown group": draws,
            "z of simulation against closed form": score(
                near.ravel().astype(np.float64), np.repeat(inside[shown], draws)
            ),
        },
        table=tuple(
            {
                "f": f,
                # 0 if a tail is under the doubt however few records there are.
                "smallest |g|·f violated": count if count > 1e-9 else 0.0,
                "smallest |g|·f exposed": smallest_told_count(f, privacy, tolerance, doubt),
            }
            for f in _FREQUENCIES
            for count in [
                smallest_exposed_count(f, privacy=privacy, epsilon=tolerance, delta=doubt)
            ]
        ),
        worst=target.rows(
            shown,
            {
                "too high": above[shown],
                "too low": below[shown],
                "simulated outside tolerance": (~near).mean(axis=1),
            },
        ),
        verdict=f"With λ = {privacy:g} the ratio of two noisy counts violates"
        f" reconstruction privacy in {violated.size:,} of {target.batch.groups:,} groups as"
        f" the paper defines it; in {exposed.size:,} of them both tails are under the doubt.",
    )


def smallest_told_count(f: float, privacy: float, tolerance: float, doubt: float) -> float:
    """The smallest |g| f from which both tails stay under the doubt.

    The paper's definition requires only one of them, which also holds if there is only noise:
    the ratio of two pure noises seldom lands that far above f for a large f.
    """
    sizes = np.geomspace(0.1, 1e4, 500) / (privacy * f)
    tails = ratio_tails(sizes, f, privacy=privacy, epsilon=tolerance)
    outside = np.flatnonzero(np.maximum(tails.above, tails.below) >= doubt)
    first = int(outside[-1]) + 1 if outside.size else 0
    return float(sizes[first] * f) if first < sizes.size else float("inf")


def group_tails(target: AttackedTable, privacy: float) -> tuple[Floats, Floats]:
    """How likely each group's most exposed value comes out too high, and too low.

    Both are beyond the tolerance, and each pair is computed once. Both are 1 where no value is
    exposed: there is nothing to estimate.
    """
    frequency = largest_exposed(target.batch, target.policy)
    exposed = np.flatnonzero(frequency)
    most = np.rint(frequency * target.batch.sizes).astype(np.int64)
    pairs = np.stack([target.batch.sizes, most])[:, exposed]
    pairs, where = np.unique(pairs, axis=1, return_inverse=True)
    size, count = pairs.astype(np.float64)
    tails = ratio_tails(size, count / size, privacy=privacy, epsilon=target.policy.tolerance)
    above, below = np.ones(frequency.size), np.ones(frequency.size)
    above[exposed], below[exposed] = (tail[where.reshape(-1)] for tail in tails)
    return above, below


def simulated_ratios(size: int, frequency: float, privacy: float, draws: int) -> Floats:
    """F' = o'_2/o'_1 of so many pairs of noisy answers."""
    return noisy_answers(size * frequency, privacy, draws) / noisy_answers(size, privacy, draws)


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
