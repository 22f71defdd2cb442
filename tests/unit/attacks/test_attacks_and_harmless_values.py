"""Attacks know what is exposed: with harmless values, a group's trials follow from the others.

The referee is brute force: every histogram of a small group, sized as a publication sizes it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.granularity import attack_granularity, attempt
from reconpriv.attacks.ratio import attack_ratio, group_tails
from reconpriv.attacks.run import ATTACKS, Effort, attack, attack_release
from reconpriv.attacks.trial_likelihood import Knowledge, leading, likely_exposed
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_cube

CHERNOFF = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
EXACT = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.05, bound="exact", unattainable="one-trial")
VALUES = ("all well", "flu", "hiv", "cold")
HARMLESS = (VALUES[0],)
# The shares of the values in every town: the harmless one is by far the most frequent.
SHARES = {"A": (0.4, 0.24, 0.2, 0.16), "B": (0.6, 0.2, 0.1, 0.1), "C": (0.1, 0.6, 0.2, 0.1)}
RECORDS = {"A": 1000, "B": 2000, "C": 400}


@pytest.fixture(scope="module")
def people() -> rp.Table:
    town, value = [], []
    for name, shares in SHARES.items():
        for one, share in zip(VALUES, shares, strict=True):
            town += [name] * round(share * RECORDS[name])
            value += [one] * round(share * RECORDS[name])
    area = ["x" if i % 3 else "y" for i in range(len(town))]
    # And a town in which nothing is exposed.
    town, value, area = town + ["D"] * 300, value + [VALUES[0]] * 300, area + ["x"] * 300
    raw = pa.table({"town": town, "area": area, "s": value})
    with rp.read(raw, sensitive="s", public="all") as table:
        yield table


# --- the sizes that an adversary inverts ----------------------------------------------------------


@cache
def histograms(size: int, m: int) -> tuple[tuple[int, ...], ...]:
    every = product(range(size + 1), repeat=m - 1)
    return tuple((size - sum(rest), *rest) for rest in every if sum(rest) <= size)


def published_trials(policy: rp.Policy, schema: Schema, histogram: tuple[int, ...]) -> int:
    held = np.flatnonzero(histogram)
    batch = CellBatch((), np.zeros(1, np.int64), held, np.array(histogram)[held])
    limit = max(float(sample_limits(batch, policy, schema.domain_size)[0]), 1.0)
    return int(min(limit, sum(histogram)))


@pytest.mark.parametrize("size", [7, 30])
@pytest.mark.parametrize("harmless", [(), ("v0",), ("v0", "v2")])
@pytest.mark.parametrize("exposed_above", [0.0, 0.2])
@pytest.mark.parametrize("sampling", ["octave", "public"])
@pytest.mark.parametrize("base", [CHERNOFF, EXACT], ids=["chernoff", "exact"])
def test_the_trials_tell_what_every_possible_group_with_them_has_in_common(
    base: rp.Policy, sampling: str, exposed_above: float, harmless: tuple[str, ...], size: int
) -> None:
    domain = ("v0", "v1", "v2", "v3")
    schema = Schema((), Column("s", Kind.STRING), domain)
    policy = replace(base, sampling=sampling, exposed_above=exposed_above, harmless=harmless).on(
        schema
    )
    with_trials: dict[int, set[int]] = {}
    for histogram in histograms(size, len(domain)):
        exposed = [c for c, v in zip(histogram, domain, strict=True) if v not in harmless]
        # Not exposed, it limits as little as none.
        largest = max(c if c / size > exposed_above else 0 for c in exposed)
        trials = published_trials(policy, schema, histogram)
        with_trials.setdefault(trials, set()).add(largest)
    known = Knowledge.of(policy, len(domain), size)
    for trials, counts in with_trials.items():
        told = known.consistent(size, trials)
        for count in {c for some in with_trials.values() for c in some}:
            share = count / size if count or harmless else exposed_above
            at = int(np.searchsorted(known.frequency, share * (1 + 1e-12), side="right")) - 1
            assert told[at] == (count in counts), (trials, count)


@pytest.mark.parametrize("sampling", ["octave", "public", "paper"])
@pytest.mark.parametrize("base", [CHERNOFF, EXACT], ids=["chernoff", "exact"])
def test_what_a_release_tells_about_f_includes_the_truth(
    people: rp.Table, base: rp.Policy, sampling: str, key: rp.Key, tmp_path: Path
) -> None:
    policy = replace(base, sampling=sampling, harmless=HARMLESS)
    people.publish(policy, tmp_path / "r", key=key)
    stored = ReleaseFolder.open(tmp_path / "r")
    if sampling == "paper" and base is EXACT:
        with pytest.raises(rp.ReconprivError, match="not a function of"):
            attack_release("granularity", tmp_path / "r")
        return
    found = {tuple(row["group"].values()): row for row in
             attack_release("granularity", tmp_path / "r").table}  # fmt: skip
    cube, target = load_cube(stored).whole, AttackedTable.of(people, policy)
    known = Knowledge.of(stored.manifest.policy, 4, int(cube.records.max()))
    limits = sample_limits(target.batch, target.policy, 4)
    for g, f in enumerate(target.frequency):
        size = int(target.batch.sizes[g])
        if target.values[g] == 0:  # only the harmless value
            assert limits[g] == np.inf or sampling == "public"
            continue
        near = np.interp(f, known.frequency, known.sizes_in(size))
        assert near == pytest.approx(max(limits[g], 1.0), rel=0.01)
        row = found.get(tuple(target.describe(g).values()))
        if row is None or sampling == "paper":
            continue
        trials = min(int(max(limits[g], 1.0)), size) if np.isfinite(limits[g]) else size
        assert row["inferred |g1|"] == trials
        told = known.frequency[known.consistent(size, trials)]
        assert told[0] * 0.99 <= f <= told[-1] * 1.01
        assert told[0] * 0.99 <= row["from"] <= row["inferred f"] <= row["to"] <= told[-1] * 1.01
        assert row["value"] not in HARMLESS


def test_f_of_a_release_is_that_of_an_exposed_value_and_the_output_says_so(
    people: rp.Table, key: rp.Key, tmp_path: Path
) -> None:
    people.publish(replace(CHERNOFF, harmless=HARMLESS), tmp_path / "r", key=key)
    result = attack_release("granularity", tmp_path / "r")
    assert "a value that is harmless may be more frequent" in result.verdict
    row = next(r for r in result.table if r["group"] == {"town": "B", "area": "x"})
    assert row["value"] not in HARMLESS
    assert row["from"] < 0.2 and row["MLE"] < 0.4  # not the 60 % of the harmless value


def test_without_harmless_values_nothing_is_said_about_them(
    people: rp.Table, key: rp.Key, tmp_path: Path
) -> None:
    people.publish(CHERNOFF, tmp_path / "r", key=key)
    result = attack_release("granularity", tmp_path / "r")
    assert "exposed" not in result.verdict
    row = next(r for r in result.table if r["group"] == {"town": "B", "area": "x"})
    assert row["value"] in HARMLESS and row["to"] > 0.5


def test_the_likely_exposed_value_leads() -> None:
    schema = Schema((), Column("s", Kind.STRING), VALUES)
    counts = np.array([[90, 5, 20, 10], [1, 2, 3, 90]])
    values = likely_exposed(counts, replace(CHERNOFF, harmless=HARMLESS).on(schema))
    assert values.tolist() == [2, 3]
    assert likely_exposed(counts, CHERNOFF).tolist() == [0, 3]
    assert leading(counts, values).tolist() == [[20, 90, 5, 10], [90, 1, 2, 3]]


# --- attacks on a table ---------------------------------------------------------------------------


@pytest.mark.parametrize("base", [CHERNOFF, EXACT], ids=["chernoff", "exact"])
def test_granularity_on_a_table_compares_like_with_like(people: rp.Table, base: rp.Policy) -> None:
    policy = replace(base, harmless=HARMLESS)
    target = AttackedTable.of(people, policy)
    exposed = target.only(target.violating())
    found = attempt(exposed, "octave")
    assert found.located.all()
    # The harmless value holds 40 to 60 % of the towns A and B; what is inferred is in the class.
    assert (found.frequency <= 2.0 * found.truth).all()
    assert (found.frequency >= 0.49 * found.truth).all()
    result = attack_granularity(target)
    overall = np.delete(target.overall, 0).max()
    near = np.abs(overall - exposed.frequency) <= 0.1 * exposed.frequency
    assert result.baseline is not None and result.baseline.share == near.mean()


def test_granularity_on_paper_recovers_f_beside_a_harmless_value() -> None:
    counts = np.array([1200, 720, 360, 240, 240, 240])
    domain = tuple("abcdef")
    schema = Schema((), Column("s", Kind.STRING), domain)
    batch = CellBatch((), np.zeros(1, np.int64), np.arange(6), counts)
    policy = replace(CHERNOFF, sampling="paper", harmless=("a",)).on(schema)
    found = [attempt(AttackedTable(schema, policy, batch), "paper", i) for i in range(15)]
    assert {one.truth[0] for one in found} == {0.24}
    assert np.mean([one.exact[0] for one in found]) >= 0.8
    assert np.median([one.error[0] for one in found]) < 0.02
    # Nor does the plain estimate take the 40 % of the harmless value for f.
    assert np.median([one.mle_error[0] for one in found]) < 0.35


def test_the_ratio_attack_asks_about_the_most_exposed_value(people: rp.Table) -> None:
    target = AttackedTable.of(people, replace(CHERNOFF, harmless=HARMLESS))
    above, below = group_tails(target, 0.1)
    harmless_only = target.values == 0
    assert harmless_only.sum() == 1
    assert (above[harmless_only] == 1.0).all() and (below[harmless_only] == 1.0).all()
    result = attack_ratio(target, draws=4_000)
    assert abs(result.figures["z of simulation against closed form"]) < 4


@pytest.mark.parametrize("sampling", ["octave", "public", "none", "paper"])
@pytest.mark.parametrize("base", [CHERNOFF, EXACT], ids=["chernoff", "exact"])
@pytest.mark.parametrize(
    "name", [one for one in ATTACKS if one not in ("persons", "side-channels")]
)
def test_every_attack_is_after_the_most_frequent_value_that_is_not_harmless(
    people: rp.Table, name: str, base: rp.Policy, sampling: str
) -> None:
    policy = replace(base, sampling=sampling, harmless=HARMLESS)
    if name == "margins":
        policy = replace(policy, margins=0.02)
    effort = Effort(releases=4, updates=1, draws=50, worst=20)
    inverted = sampling != "none" and (sampling != "paper" or base is CHERNOFF)
    if (name == "granularity" and not inverted) or not policy.can_sample:
        with pytest.raises(rp.ReconprivError):
            attack(name, people, policy, effort)
        return
    result = attack(name, people, policy, effort)
    if name != "infer":  # which is about single people
        assert result.worst
    target = AttackedTable.of(people, policy)
    limits = sample_limits(target.batch, target.policy, 4)
    groups = [target.describe(g) for g in range(target.batch.groups)]
    for row in result.worst:
        if name == "updates":  # the last of its tables differs in a few records
            own = max(limits[groups.index(row["group"])], 1.0)
            assert max(row["limit"], 1.0) == pytest.approx(own, rel=0.15)
            continue
        shares = SHARES[row["group"]["town"]]
        assert row["largest f"] == pytest.approx(max(shares[1:]), abs=0.02)
