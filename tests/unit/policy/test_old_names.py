"""The names that a policy's fields had before, and calls without names."""

import dataclasses
import warnings

import pytest

import reconpriv as rp
from reconpriv.errors import InputError, PolicyError
from reconpriv.policy.old_names import OLD_NAMES, restored, stored

NEW = {"retention": 0.5, "tolerance": 0.4, "doubt": 0.3, "sampling": "public"}
OLD = {"retention": 0.5, "epsilon": 0.4, "delta": 0.3, "sample_size": "public"}


def test_old_names_mean_the_new_ones_and_each_is_announced_where_it_is_used():
    with pytest.warns(FutureWarning) as told:
        made = rp.Policy(**OLD)
    assert made == rp.Policy(**NEW)
    assert sorted(str(one.message).split(";")[0] for one in told) == [
        "delta is now called doubt", "epsilon is now called tolerance",
        "sample_size is now called sampling",
    ]  # fmt: skip
    assert {one.filename for one in told} == {__file__}


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_an_old_attribute_is_the_new_one_and_is_announced(old, new):
    policy = rp.Policy(**NEW)
    with pytest.warns(FutureWarning, match=f"^{old} is now called {new}; ") as told:
        assert getattr(policy, old) == NEW[new]
    assert told[0].filename == __file__


def test_new_names_are_not_commented_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = dataclasses.replace(rp.Policy(**NEW), tolerance=0.6)
    assert (policy.tolerance, policy.doubt, policy.sampling) == (0.6, 0.3, "public")


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_an_old_name_beside_the_new_one_is_refused_in_replace_too(old, new):
    words = f"^{old} is the old name of {new}; got both, {old}={OLD[old]!r} and {new}="
    with pytest.raises(PolicyError, match=words) as raised:
        rp.Policy(**NEW, **{old: OLD[old]})
    assert raised.value.advice == f"Give {new} alone, in dataclasses.replace too."
    with pytest.raises(PolicyError, match=words):
        dataclasses.replace(rp.Policy(**NEW), **{old: OLD[old]})


@pytest.mark.parametrize(
    ("values", "more", "call"),
    [
        ((0.5, 0.5, 0.3), {}, "Policy(retention=0.5, tolerance=0.5, doubt=0.3)"),
        ((0.5,), {"tolerance": 0.5, "doubt": 0.3}, "Policy(retention=0.5, …)"),
        ((1,) * 20, {}, None),
    ],
)
def test_a_call_without_names_is_refused_with_the_call_to_write(values, more, call):
    with pytest.raises(PolicyError, match="takes its fields by keyword; got ") as raised:
        rp.Policy(*values, **more)
    assert f"got {len(values)} without a name." in str(raised.value)
    assert call is None or raised.value.advice == f"Write {call}."


def test_files_keep_the_old_names_and_are_read_back():
    plain = rp.Policy(**NEW, margins=1.0).as_dict()
    kept = stored(plain)
    assert [kept[name] for name in OLD_NAMES] == [0.4, 0.3, "public"]
    assert not kept.keys() & OLD_NAMES.values()
    assert restored(kept) == plain and list(restored(kept)) == list(plain)


def test_tune_takes_old_lists_with_a_warning_and_checks_them_alike(small):
    table = rp.read(small, sensitive="Education", public="all")
    new = {"tolerances": [0.5], "doubts": [0.3], "samplings": ["octave"]}
    old = {"epsilons": [0.5], "deltas": [0.3], "sample_sizes": ["octave"]}
    same = {"retentions": [0.5], "queries": 20, "pooled": False}
    with pytest.warns(FutureWarning, match="is now called") as told:
        found = table.tune(**same, **old)
    assert {one.filename for one in told} == {__file__} and len(told) == 3
    assert found.to_arrow().equals(table.tune(**same, **new).to_arrow())
    with pytest.raises(PolicyError, match="epsilons is the old name of tolerances; got both"):
        table.tune(tolerances=[0.5], epsilons=[0.5])
    with pytest.warns(FutureWarning), pytest.raises(InputError, match="doubts must be a list"):
        table.tune(deltas=0.3)
