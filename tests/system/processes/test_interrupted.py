"""What a fresh pair of eyes found: each finding with the test that keeps it fixed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.core.kernel import Kernel
from reconpriv.errors import InputError, KeyFileError, PolicyError
from reconpriv.theory.perturbation import retention_for_privacy

POLICY = rp.Policy(0.5, 0.5, 0.3)


@pytest.fixture
def table():
    return pa.table({"g": ["a", "b"] * 200, "s": ["x", "x", "y", "z"] * 100})


@pytest.mark.parametrize("sample_size", ["octave", "public", "paper", "none"])
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_what_is_not_a_number_is_missing_and_the_release_opens(sample_size, file_format, tmp_path):
    raw = pa.table({"a": [math.nan, 2.0, None, -0.0, 0.0] * 40, "s": ["x", "y"] * 100})
    policy = rp.Policy(0.5, 0.5, 0.3, sample_size=sample_size)
    with rp.read(raw, sensitive="s") as opened:
        assert sum(batch.groups for batch in opened.groups()) == 3
        opened.publish(policy, tmp_path / "r", key=rp.Key.generate(), file_format=file_format)
    release = rp.open(tmp_path / "r")
    if sample_size != "paper":
        assert release.count(a=None).count == 80
        assert release.count("a = 0").count == 80


def test_a_group_shows_its_bound_beside_its_tails(table):
    with rp.read(table, sensitive="s") as opened:
        report = opened.audit(POLICY)
        groups = pa.concat_tables(opened.audit_groups(POLICY, exact=True))
    for verdict in report.worst:
        smallest = min(verdict.bound_above, verdict.bound_below)
        assert verdict.private == (smallest >= POLICY.delta)
        assert verdict.upper_tail <= verdict.bound_above
        assert verdict.lower_tail <= verdict.bound_below
        assert set(verdict.as_dict()["bound"]) == {"above", "below"}
    assert {"bound_above", "bound_below", "upper_tail", "lower_tail"} <= set(groups.column_names)
    assert " bound " in str(report)


@pytest.mark.parametrize("text", ["0123456789abcdef" * 4, "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="])
def test_a_key_given_for_a_file_is_not_echoed(text):
    with pytest.raises(KeyFileError) as caught:
        rp.Key.from_file(text)
    assert text not in str(caught.value)
    assert "not as its text" in str(caught.value)


def test_a_waived_promise_is_said_in_manifest_info_and_warnings(table, tmp_path):
    policy = rp.Policy(0.9, 0.9, 0.9, unattainable="one-trial")
    with rp.read(table, sensitive="s") as opened:
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.generate())
    assert release.manifest["reconpriv"]["unattainable"] == "one-trial"
    assert any("nothing is promised" in note for note in release.warnings)


@pytest.mark.parametrize(("sample_size", "words"), [("paper", "leaks"), ("none", "only perturbs")])
def test_a_weak_sample_size_is_warned_of(table, sample_size, words, tmp_path):
    policy = rp.Policy(0.5, 0.5, 0.3, sample_size=sample_size)
    with rp.read(table, sensitive="s") as opened:
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.generate())
    assert any(words in note for note in release.warnings)


def test_a_single_group_is_not_called_uninformative_where_nothing_was_sampled(table, tmp_path):
    with rp.read(table, sensitive="s") as opened:
        release = opened.publish(
            rp.Policy(0.5, 0.5, 0.3, sample_size="none"), tmp_path / "r", key=rp.Key.generate()
        )
    remarks = release.count(g="a", s="x").remarks
    assert remarks == ("rests on a single micro group",)


def test_a_smaller_sample_consists_of_trials_of_a_larger_one_up_to_rounding():
    """The same key with a stricter ε: at most one trial a value is not in the larger sample."""
    with rp.read("example:adult", sensitive="occupation", public=["age", "sex", "race"],
                 missing="value") as table:  # fmt: skip
        batches = list(table.groups())
        drawn = []
        for epsilon in (0.5, 0.7):
            kernel = Kernel(table.schema, rp.Policy(0.5, epsilon, 0.3), rp.Key.test())
            drawn.append(np.concatenate([_drawn(batch, kernel) for batch in batches]))
    assert (drawn[1] - drawn[0]).max() <= 1
    assert drawn[1].sum() < drawn[0].sum()


def _drawn(batch, kernel):
    from reconpriv.core import kernel as steps

    words = kernel.randomness()
    limits = steps.sample_limits(batch, kernel.policy, kernel.schema.domain_size)
    ids = np.zeros(batch.groups, np.uint64)
    for column, encoded in zip(kernel.schema.public, batch.public, strict=True):
        ids += words.hash_values(column, encoded.values.to_pylist())[encoded.codes]
    cells = ids[batch.group_of_cell] + words.hash_sensitive(
        kernel.schema.sensitive, kernel.schema.domain)[batch.value]  # fmt: skip
    return steps._sample(
        batch, batch.sizes > limits, limits, kernel.policy, words, cells, ids)  # fmt: skip


def test_plain_perturbation_does_not_depend_on_epsilon_and_delta(table):
    found = []
    with rp.read(table, sensitive="s") as opened:
        for epsilon, delta in ((0.1, 0.14), (0.9, 0.46)):
            policy = rp.Policy(0.5, epsilon, delta, sample_size="none")
            kernel = Kernel(opened.schema, policy, rp.Key.test())
            pieces = [piece for batch in opened.groups() for piece in kernel(batch)]
            found.append([piece.count.tolist() for piece in pieces])
    assert found[0] == found[1]


def test_a_confidence_next_to_one_gives_finite_json(cli, table, tmp_path):
    with rp.read(table, sensitive="s") as opened:
        opened.publish(POLICY, tmp_path / "r", key=rp.Key.generate())
    done = cli("query", tmp_path / "r", "SELECT count(*) FROM release WHERE s = 'x'",
               "--confidence", "0.9999999999999999", "--json")  # fmt: skip
    assert done.code == 0
    assert math.isfinite(json.loads(done.out)["low"])


@pytest.mark.parametrize(("rho1", "rho2"), [(1e-320, 0.999999999999), (1e-30, 0.9)])
def test_beliefs_too_far_apart_are_named(rho1, rho2):
    with pytest.raises(PolicyError, match="ρ1"):
        retention_for_privacy(rho1, rho2, 5)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--batch", "q.csv", "--simultaneous"],
        ["SELECT count(*) FROM release", "--overwrite"],
    ],
)
def test_an_option_that_would_be_ignored_is_refused(cli, tmp_path, arguments):
    done = cli("query", tmp_path, *arguments)
    assert done.code == 2 and "goes with" in done.err


def test_an_empty_list_of_public_columns_is_refused_on_the_command_line(cli):
    done = cli("audit", "example:adult", "-s", "sex", "--public", "")
    assert done.code == 2 and "--public is empty" in done.err


def test_a_bad_groups_file_is_refused_before_the_table_is_read(cli):
    done = cli("audit", "no-such-table.csv", "-s", "x", "--groups", "verdicts.txt")
    assert done.code == 2 and "verdicts.txt" in done.err


def test_one_column_may_be_given_as_text(table):
    with rp.read(table, sensitive="s", public="g") as opened:
        assert [column.name for column in opened.schema.public] == ["g"]
    with rp.read(table, sensitive="s", drop="g") as opened:
        assert opened.schema.public == ()


@pytest.mark.parametrize("value", ["0.5", None, True])
def test_a_policy_of_no_numbers_is_refused(value):
    with pytest.raises(PolicyError, match="number"):
        rp.Policy(value, 0.5, 0.3)


def test_one_query_is_no_batch(table, tmp_path):
    with rp.read(table, sensitive="s") as opened:
        release = opened.publish(POLICY, tmp_path / "r", key=rp.Key.generate())
    with pytest.raises(InputError, match="list"):
        release.count_many("SELECT count(*) FROM release")


def test_a_selectivity_that_nothing_reaches_is_refused_at_once(table):
    with rp.read(table, sensitive="s") as opened, pytest.raises(InputError, match="No query"):
        opened.workload(queries=10, min_selectivity=0.9)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_publication_leaves_nothing(sent, tmp_path):
    rng = np.arange(6_000_000)
    source = tmp_path / "big.parquet"
    pq.write_table(pa.table({"id": rng, "k": rng % 977, "s": (rng * 7919) % 5}), source)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "reconpriv", "publish", str(source), str(tmp_path / "out"),
               "-s", "s", "--keep-identifier", "id"]  # fmt: skip
    process = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not any(tmp_path.glob(".out.*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(sent)
    _, error = process.communicate(timeout=60)
    assert process.returncode == (143 if sent == signal.SIGTERM else 130), error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.parquet", "scratch"]
    assert list(scratch.iterdir()) == []


def test_a_failed_study_leaves_no_folder(cli, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("Age,Gender,Education,Marital,Race,Workclass,Occupation\n1,M,1,1,1,1,1\n" * 1)
    done = cli("experiment", "all", "--data", bad, "--out", tmp_path / "out")
    assert done.code == 2 and not (tmp_path / "out").exists()


def test_a_study_does_not_replace_what_it_did_not_make(cli, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    for extra in ([], ["--overwrite"]):
        done = cli("experiment", "distribution", "--out", tmp_path / "out", *extra)
        assert done.code == 2
    assert (tmp_path / "out" / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["micro", "-s", "s"], "already"),
        (["micro", "-p", "0.4"], "already"),
        (["micro", "--releases", "3"], "--releases goes with"),
    ],
)
def test_an_attack_refuses_options_that_it_has_no_use_for(cli, table, tmp_path, arguments, words):
    with rp.read(table, sensitive="s") as opened:
        opened.publish(POLICY, tmp_path / "r", key=rp.Key.generate())
    name, *rest = arguments
    done = cli("attack", name, tmp_path / "r", *rest)
    assert done.code == 2 and words in done.err
