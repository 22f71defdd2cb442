"""l-diversity and t-closeness, as others define them, of groups that share their public values.

Groups come as cells: ``starts`` is the first cell of each group, and ``count`` the records of each
cell, at least one. In a group, no two cells have the same value.

- Distinct and entropy l-diversity: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam,
  *l-diversity: privacy beyond k-anonymity*, TKDD 1 (2007), definitions 4.1 and 4.2.
- t-closeness with the equal ground distance: Li, Li, Venkatasubramanian, *t-closeness: privacy
  beyond k-anonymity and l-diversity*, ICDE (2007), section 4.2. The earth mover's distance is then
  the total variation distance.
"""

from __future__ import annotations

import numpy as np

from reconpriv.theory.arrays import Floats, Ints, run_lengths


def distinct_values(starts: Ints, count: Ints) -> Ints:
    """How many sensitive values occur in each group: the l of distinct l-diversity."""
    return run_lengths(starts, count.size)


def effective_values(starts: Ints, count: Ints) -> Floats:
    """exp(H) of each group, H = -Σ f ln f: the l of entropy l-diversity.

    That is the number of equally frequent values with the same entropy: 1 if all are the same.
    """
    share = _shares(starts, count)
    return np.asarray(np.exp(-np.add.reduceat(share * np.log(share), starts)))


def distance_to_all(starts: Ints, value: Ints, count: Ints, overall: Floats) -> Floats:
    """½ Σ |f - q| of each group, q being the shares of the whole table: the t of t-closeness.

    ``value`` is the place of each cell's value in the domain, whose shares ``overall`` are. Both
    kinds of shares add up to 1, so the excess alone, over the values that occur, says the same.
    """
    excess = np.maximum(_shares(starts, count) - overall[value], 0.0)
    return np.asarray(np.add.reduceat(excess, starts))


def _shares(starts: Ints, count: Ints) -> Floats:
    """f of each cell in its group."""
    size = np.repeat(np.add.reduceat(count, starts), run_lengths(starts, count.size))
    return np.asarray(count / size)
