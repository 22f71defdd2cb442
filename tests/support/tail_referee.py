"""The tails of F' in fractions, outcome by outcome: what every faster sum is compared with."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, comb, floor


@cache
def binomial(n, q):
    return tuple(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1))


@cache
def observed(n, holders, p, m):
    """Pr[O* = x] for x = 0 … n."""
    t = (1 - p) / m
    mass = [Fraction(0)] * (n + 1)
    for (a, x), (b, y) in product(
        enumerate(binomial(holders, p + t)), enumerate(binomial(n - holders, t))
    ):
        mass[a + b] += x * y
    return tuple(mass)


@cache
def mass_of(n, f, p, m):
    """Pr[O* = x] if the holders among the trials are n f, rounded down or up."""
    quota = n * Fraction(f)
    part = quota - floor(quota)
    low, high = (observed(n, holders, p, m) for holders in (floor(quota), ceil(quota)))
    return tuple((1 - part) * x + part * y for x, y in zip(low, high, strict=True))


@cache
def tails_of_trials(n, f, p, m, epsilon):
    """Pr[(F'-f)/f > ε] and Pr[(F'-f)/f < -ε] from n trials."""
    mass, t = mass_of(n, f, p, m), (1 - p) / m
    low, high = (n * (p * f * (1 + sign * epsilon) + t) for sign in (-1, 1))
    above = sum((mass[x] for x in range(n + 1) if x > high), Fraction(0))
    return above, sum((mass[x] for x in range(n + 1) if x < low), Fraction(0))


@cache
def tails_as_published(size, n, held, p, m, epsilon):
    """The same from the counts that are published: n trials in unequal numbers of copies."""
    f, t = Fraction(held, size), (1 - p) / m
    low, high = (p * f * (1 + sign * epsilon) + t for sign in (-1, 1))
    mass, (copies, more) = mass_of(n, f, p, m), divmod(size, n)
    above = below = Fraction(0)
    for x, extra in product(range(n + 1), range(more + 1)):
        ways = Fraction(comb(x, extra) * comb(n - x, more - extra), comb(n, more))
        share = Fraction(copies * x + extra, size)
        above += mass[x] * ways * (share > high)
        below += mass[x] * ways * (share < low)
    return above, below
