"""What counts as exposed: audits against brute force, classes, sizes, and bad input."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.cells.cube import collect
from reconpriv.errors import PolicyError
from reconpriv.policy.exposure import exposed_borders, largest_exposed, most_exposed
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import SAMPLING_RULES, octaves, sample_limits, start_of_octave
from reconpriv.theory.tails.privacy import is_private, largest_private_size

DOMAIN = ["a", "b", "c", "d"]


def made_table(seed=0, groups=60):
    """Groups of 1 to 80 records, from even to one value for all."""
    random = np.random.default_rng(seed)
    rows = []
    for g in range(groups):
        weights = random.dirichlet(np.full(4, random.choice([0.2, 1.0, 5.0])))
        rows += [(g, DOMAIN[v]) for v in random.choice(4, random.integers(1, 81), p=weights)]
    g, s = zip(*rows, strict=True)
    return rp.read(pa.table({"g": g, "s": s}), sensitive="s", public="all", domain=DOMAIN)


def histograms(table):
    cube = collect(table.batches(), table.schema)
    counts = np.zeros((cube.groups, 4), dtype=int)
    counts[cube.group, cube.value] = cube.count
    return counts


@pytest.fixture(scope="module")
def table():
    return made_table()


POLICIES = [*itertools.product(("chernoff", "exact"), (0.0, 0.25, 0.6), ((), ("b",), ("a", "c")))]


@pytest.mark.parametrize(("bound", "phi", "harmless"), POLICIES)
def test_an_audit_equals_brute_force(table, bound, phi, harmless):
    delta = 0.3 if bound == "chernoff" else 0.05
    policy = Policy(
        retention=0.5, tolerance=0.5, doubt=delta, bound=bound, exposed_above=phi, harmless=harmless
    )
    counts = histograms(table)
    verdicts, sizes = [], []
    for group in counts:
        size = group.sum()
        exposed = [k for v, k in enumerate(group) if k / size > phi and DOMAIN[v] not in harmless]
        # The rest of the group counts as one value that is not tested.
        verdicts.append(all(_value_passes(k, size, delta, bound) for k in exposed))
        limits = [_limit(k / size, delta) for k in exposed]
        sizes.append(min(limits, default=np.inf))
    report = table.audit(policy, worst=0, columns=False)
    assert report.violating_groups == len(verdicts) - sum(verdicts)
    assert report.violating_records == counts.sum(axis=1)[~np.array(verdicts)].sum()
    if bound == "chernoff":
        found = pa.concat_tables(table.audit_groups(policy))
        assert found.column("largest_private_size").to_pylist() == pytest.approx(sizes)
        assert found.column("private").to_pylist() == verdicts


def _value_passes(count, size, delta, bound):
    """One value of a group, whatever the others are: is_private tests all, so ask for the tails."""
    from reconpriv.theory.counts import ObservedCount
    from reconpriv.theory.tails.bounds import BOUNDS

    tails = BOUNDS[bound].tails(
        ObservedCount(np.array([float(size)]), np.array([count / size]), 0.5, 4, 0.5)
    )
    return bool(min(tails.upper[0], tails.lower[0]) >= delta)


def _limit(frequency, delta):
    return float(
        largest_private_size(frequency, retention=0.5, domain_size=4, epsilon=0.5, delta=delta)
    )


def test_without_options_everything_is_tested(table):
    plain = Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    assert plain.tests_everything
    batch = collect(table.batches(), table.schema).as_batch()
    assert largest_exposed(batch, plain) is not None
    assert np.array_equal(largest_exposed(batch, plain), batch.largest_frequencies)
    for counts in histograms(table)[:20]:
        private = is_private(counts, retention=0.5, domain_size=4, epsilon=0.5, delta=0.3)
        assert private == (counts.sum() <= _limit(counts.max() / counts.sum(), 0.3))


def test_a_share_of_exactly_phi_is_not_exposed():
    values = ["a"] * 29 + ["b"] * 71
    table = rp.read(
        pa.table({"g": [1] * 100, "s": values}), sensitive="s", public="all", domain=DOMAIN
    )
    batch = collect(table.batches(), table.schema).as_batch()
    for phi, found in ((0.29, 0.71), (0.71, 0.0), (0.7099, 0.71)):
        assert largest_exposed(
            batch, Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=phi)
        ).tolist() == [found]


def test_the_most_exposed_value_is_the_largest_that_is_not_harmless(table):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, harmless=("a", "d")).on(table.schema)
    batch = collect(table.batches(), table.schema).as_batch()
    counts = histograms(table)
    found = most_exposed(batch, policy)
    for group, value in zip(counts, found, strict=True):
        minded = group[[1, 2]]
        expected = group.argmax() if not minded.any() else 1 + minded.argmax()
        assert value == expected


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phi", "borders"),
    [(0.25, [0.25, 0.5, 1]), (0.3, [0.3, 0.6, 1]), (0.5, [0.5, 1]), (0.9, [0.9, 1])],
)
def test_classes_double_from_phi(phi, borders):
    assert exposed_borders(phi).tolist() == borders
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=phi)
    frequency = np.array([0.0, *borders[1:], np.nextafter(phi, 1), 0.99])
    classes = octaves(frequency, policy)
    above = start_of_octave(classes, policy)
    assert classes[0] == 0.0
    assert ((frequency > above) & (frequency <= classes))[1:].all()
    assert set(classes[1:].tolist()) <= set(borders[1:])


def test_a_group_without_an_exposed_value_is_never_sampled(table):
    batch = collect(table.batches(), table.schema).as_batch()
    for bound, delta in (("chernoff", 0.9), ("exact", 0.05)):
        policy = Policy(retention=0.5, tolerance=0.5, doubt=delta, bound=bound, exposed_above=0.45)
        limits = sample_limits(batch, policy, 4)
        nothing = batch.largest_frequencies <= 0.45
        assert 0 < nothing.sum() < batch.groups
        assert np.isinf(limits[nothing]).all()
        assert np.isfinite(limits[~nothing]).all()
        public = sample_limits(batch, replace(policy, sampling="public"), 4)
        assert np.isfinite(public).all()  # it may not depend on what is exposed


def bits(classes):
    """The entropy of the class of a group: what its trials tell about it at most."""
    _, counts = np.unique(classes, return_counts=True)
    share = counts / counts.sum()
    return float(-(share * np.log2(share)).sum())


def test_octaves_above_phi_tell_less():
    """Each class is a union of octaves, so no group's trials tell more about it."""
    random = np.random.default_rng(1)
    rows = [(g, f"v{v}") for g in range(200) for v in random.zipf(1.2, 60) % (2 + g % 30)]
    g, s = zip(*rows, strict=True)
    table = rp.read(pa.table({"g": g, "s": s}), sensitive="s", public="all")
    batch = collect(table.batches(), table.schema).as_batch()
    plain, above = (
        Policy(retention=0.5, tolerance=0.5, doubt=0.3),
        Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=0.25),
    )
    before = octaves(batch.largest_frequencies, plain)
    after = octaves(largest_exposed(batch, above), above)
    for one in np.unique(before):
        assert np.unique(after[before == one]).size == 1
    assert np.unique(after).size < np.unique(before).size
    assert bits(after) < bits(before)


# --- releases -------------------------------------------------------------------------------------


def test_a_release_says_what_is_exposed_and_is_read_back(table, tmp_path, key):
    policy = Policy(
        retention=0.5, tolerance=0.5, doubt=0.05, bound="exact", exposed_above=0.25, harmless=("b",)
    )
    made = table.publish(policy, tmp_path / "r", key=key)
    block = json.loads((tmp_path / "r" / "datapackage.json").read_text())["reconpriv"]
    assert block["exposed_above"] == 0.25
    assert block["harmless"] == ["b"]
    assert block["format_version"] == 4
    assert "overall" not in json.dumps(block)
    read = rp.open(tmp_path / "r")
    assert read.description.policy.harmless == ("b",)
    assert read.promise == made.promise
    assert 'that more than 25 % of them hold, except "b", an adversary' in read.promise
    assert read.count(s="a").low <= table.count(s="a") <= read.count(s="a").high


def test_phi_zero_and_no_harmless_values_give_the_same_bytes(table, tmp_path, key):
    plain = Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    for name, policy in (("plain", plain), ("zero", replace(plain, exposed_above=0, harmless=[]))):
        table.publish(policy, tmp_path / name, key=key)
    for file in (tmp_path / "plain").iterdir():
        assert file.read_bytes() == (tmp_path / "zero" / file.name).read_bytes()
    block = json.loads((tmp_path / "plain" / "datapackage.json").read_text())["reconpriv"]
    assert not {"exposed_above", "harmless"} & set(block)


@pytest.mark.parametrize(
    "damage",
    [
        {"exposed_above": 1.5},
        {"exposed_above": "x"},
        {"harmless": ["z"]},
        {"harmless": DOMAIN},
        {"format_version": 3},
    ],
)
def test_a_damaged_manifest_is_refused(table, tmp_path, key, damage):
    table.publish(
        Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=0.25), tmp_path / "r", key=key
    )
    file = tmp_path / "r" / "datapackage.json"
    manifest = json.loads(file.read_text())
    manifest["reconpriv"] |= damage
    file.write_text(json.dumps(manifest))
    with pytest.raises(rp.ReconprivError, match="damaged"):
        rp.open(tmp_path / "r")


@pytest.mark.parametrize("sampling", [*SAMPLING_RULES])
def test_every_sampling_publishes_with_it(table, tmp_path, key, sampling):
    policy = Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.3,
        sampling=sampling,
        exposed_above=0.4,
        harmless=("d",),
    )
    release = table.publish(policy, tmp_path / sampling, key=key)
    assert release.count().count == table.count() or sampling == "paper"


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, True, "much", float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(PolicyError, match="at least 0 and below 1"):
        Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=share)


def test_harmless_values_must_be_a_list_of_known_ones(table):
    with pytest.raises(PolicyError, match="given as a list"):
        Policy(retention=0.5, tolerance=0.5, doubt=0.3, harmless="a")
    with pytest.raises(PolicyError, match="no value 'z'"):
        table.audit(Policy(retention=0.5, tolerance=0.5, doubt=0.3, harmless=("z",)))
    with pytest.raises(PolicyError, match="nothing to protect"):
        table.audit(Policy(retention=0.5, tolerance=0.5, doubt=0.3, harmless=DOMAIN))


def test_the_command_line_takes_it_all(cli, tmp_path):
    table = ["example:adult", "-s", "occupation", "--public", "age,sex", "--missing", "value"]
    asked = ["--exposed-above", "0.25", "--harmless", "NULL,Sales"]
    found = cli("audit", *table, *asked, "--no-columns", "--json")
    policy = json.loads(found.out)["policy"]
    assert policy["exposed_above"] == 0.25
    assert policy["harmless"] == ["NULL", "Sales"]
    empty = cli("audit", *table, "--harmless", " ")
    assert (empty.code, "--harmless is empty" in empty.err) == (2, True)
    wrong = cli("publish", *table, str(tmp_path / "r"), "--harmless", "Salez")
    assert (wrong.code, "no value 'Salez'" in wrong.err) == (2, True)
    assert not (tmp_path / "r").exists()
