"""How likely the published counts of a scaled group are, given its number of trials.

Scaling (Algorithm 1) publishes each of the n = |g1| trials ⌊b'⌋ or ⌊b'⌋+1 times, b' = |g|/n. So a
published count is y = k⌊b'⌋ + e for k trials, e of which got one extra copy; the k sum to n, and
the e to the rest of the group's size. Few n fit many counts at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.theory.arrays import Floats, Ints

# The adversary's prior on the values other than the one that is sought: their perturbed shares
# are Dirichlet with this parameter, an even but vague prior.
_VAGUE = 0.7
# Kinds that are convolved together; they are sorted by copies, so those of a block are alike.
_BLOCK = 256


def count_log_likelihood(
    counts: Ints, group: Ints, candidates: Ints, shares: Floats | None = None
) -> tuple[Floats, Ints]:
    """ln Pr[counts | n, k] for each candidate n and each k trials of the first value.

    ``counts`` has a row for each group and a column for each value of the domain; ``candidates``
    are numbers of trials, each of the ``group`` beside it. Returns one row per candidate; column j
    stands for k = top + j. The other values' trials are summed out: a convolution of what each
    value allows, restricted to the sum n - k.
    """
    domain_size = counts.shape[1]
    others = counts[:, 1:]
    order = np.argsort(-others, axis=1, kind="stable") + 1
    order = order[:, : int(np.count_nonzero(others, axis=1).max())]
    order = np.pad(order, ((0, 0), (1, 0)))
    y = np.take_along_axis(counts, order, axis=1)
    total = y.sum(axis=1)
    known = None if shares is None else np.take_along_axis(shares, order, axis=1)
    kinds, kind = _Kinds.of(y, total[group] // candidates, group)
    slack = candidates - kinds.least.sum(axis=1)[kind]
    fits = np.all(kinds.least <= kinds.most, axis=1)
    possible = fits[kind] & (slack >= 0) & (kinds.most.sum(axis=1)[kind] >= candidates)
    room = np.zeros(kinds.copies.size, dtype=np.int64)
    np.maximum.at(room, kind, np.where(possible, slack + 1, 0))
    prior = _TrialPrior.of(int(total.max()) + 2, domain_size, known)
    log_state = _others(kinds, room, prior)
    k, choose = kinds.ways(np.arange(room.size), 0, int(room.max(initial=1)), prior.log_factorial)
    rest = slack[:, None] - np.arange(k.shape[1])
    inside = (rest >= 0) & (rest < room[kind][:, None]) & possible[:, None]
    summed = log_state[kind[:, None], np.where(inside, rest, 0)]
    others = np.where(inside, candidates[:, None] - k[kind], 0)
    extra = total[group] % candidates
    ways = log_choose(candidates, extra, prior.log_factorial)
    fit = summed + choose[kind] - ways[:, None] + prior.of_sum[others]
    return np.where(inside, fit, -np.inf), kinds.least[kind, 0]


@dataclass(frozen=True)
class _Kinds:
    """Candidates of one group with the same ⌊b'⌋ differ in nothing but the sum of their k."""

    group: Ints
    copies: Ints
    y: Ints
    least: Ints
    most: Ints

    @classmethod
    def of(cls, y: Ints, copies: Ints, group: Ints) -> tuple[_Kinds, Ints]:
        """The kinds, fewest copies first, and that of each candidate."""
        pairs, kind = np.unique(copies * len(y) + group, return_inverse=True)
        c, g = np.divmod(pairs, len(y))
        counts = y[g]
        return cls(g, c, counts, -(-counts // (c + 1)[:, None]), counts // c[:, None]), kind

    def ways(
        self, rows: Ints, value: int, columns: int, log_factorial: Floats
    ) -> tuple[Ints, Floats]:
        """k from its minimum on, and ln C(k, e) with e = y - k⌊b'⌋ trials with an extra copy."""
        least, most = self.least[rows, value][:, None], self.most[rows, value][:, None]
        width = min(int((most - least).max(initial=0)), columns - 1) + 1
        k = least + np.arange(width)
        inside = k <= most
        k = np.where(inside, k, least)
        e = np.clip(self.y[rows, value][:, None] - k * self.copies[rows][:, None], 0, k)
        return k, np.where(inside, log_choose(k, e, log_factorial), -np.inf)


@dataclass(frozen=True)
class _TrialPrior:
    """ln of the weight of k trials of each value, and of the factor that goes with their sum.

    Pólya's law, the same for all values, or the multinomial law if their shares are known.
    """

    log_factorial: Floats
    even: Floats
    of_sum: Floats
    log_odds: Floats | None

    @classmethod
    def of(cls, count: int, domain_size: int, shares: Floats | None) -> _TrialPrior:
        """For up to ``count`` trials; ``shares`` has a row for each group."""
        log_factorial = log_gamma(count, 1.0)
        if shares is not None:
            odds = np.log(shares / (1 - shares[:, :1]))
            return cls(log_factorial, -log_factorial, log_factorial, odds)
        even = log_gamma(count, _VAGUE) - log_factorial
        of_sum = log_factorial - log_gamma(count, _VAGUE * (domain_size - 1))
        return cls(log_factorial, even, of_sum, None)

    def at(self, k: Ints, group: Ints, value: int) -> Floats:
        """The weight of k trials of one value in each group."""
        if self.log_odds is None:
            return self.even[k]
        return np.asarray(self.even[k] + k * self.log_odds[group, value][:, None])


def _others(kinds: _Kinds, room: Ints, prior: _TrialPrior) -> Floats:
    """ln of the weight of all values but the first, by how far their k exceed the least."""
    state = np.full((room.size, max(int(room.max(initial=1)), 1)), -np.inf)
    used = np.flatnonzero(room)
    for start in range(0, used.size, _BLOCK):
        rows = used[start : start + _BLOCK]
        columns = int(room[rows].max())
        here, scale = np.zeros((rows.size, columns)), np.zeros(rows.size)
        here[:, 0] = 1.0
        for value in range(1, kinds.y.shape[1]):
            k, choose = kinds.ways(rows, value, columns, prior.log_factorial)
            weight = choose + prior.at(k, kinds.group[rows], value)
            here, scale = _convolve(here, scale, weight)
        with np.errstate(divide="ignore"):
            state[rows, :columns] = np.log(here) + scale[:, None]
    return state


def _convolve(state: Floats, scale: Floats, log_weight: Floats) -> tuple[Floats, Floats]:
    """One more value: row-wise convolution, kept in range by one factor per row."""
    if log_weight.shape[1] == 1:
        return state, scale + log_weight[:, 0]
    largest = log_weight.max(axis=1)
    weight = np.exp(log_weight - largest[:, None])
    result = state * weight[:, :1]
    for shift in range(1, weight.shape[1]):
        # Few kinds are as wide as the widest.
        some = weight[:, shift] > 0
        result[some, shift:] += state[some, :-shift] * weight[some, shift : shift + 1]
    peak = result.max(axis=1)
    peak = np.where(peak > 0, peak, 1.0)
    return result / peak[:, None], scale + largest + np.log(peak)


def log_choose(n: Ints, k: Ints, log_factorial: Floats) -> Floats:
    """ln C(n, k)."""
    return np.asarray(log_factorial[n] - log_factorial[k] - log_factorial[n - k])


def log_gamma(count: int, offset: float) -> Floats:
    """ln Γ(k + offset) - ln Γ(offset) for k = 0, 1, …: with offset 1 these are ln k!."""
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(count) + offset))))
