"""The check of the promise passes for what is published, and fails for 30 % more trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from lab.promise_check import PromiseCheck
from reconpriv.attacks.attacked_table import AttackedTable, Publication
from reconpriv.protect.margins.limits import CountedLimits

KEYS = 80
POLICY = replace(rp.preset("recommended"), margins=2.0)


@pytest.fixture(scope="module")
def target() -> AttackedTable:
    """Groups of 60 records, all too large: one value is held by half of each or more."""
    columns: list[np.ndarray] = []
    for place in np.ndindex(6, 4, 3):
        value = np.minimum(np.arange(60) // (30 + 3 * place[0]) * np.arange(60), 5 + place[1])
        columns.append(np.stack([*(np.full(60, one) for one in place), value]))
    rows = np.concatenate(columns, axis=1)
    table = pa.table(dict(zip(("a", "b", "c", "value"), rows, strict=True)))
    with rp.read(table, sensitive="value", public=["a", "b", "c"]) as opened:
        return AttackedTable.of(opened, POLICY)


def checked(
    target: AttackedTable, publish: Callable[[int], Publication] | None = None
) -> PromiseCheck:
    check = PromiseCheck.of(target)
    for number in range(KEYS):
        check.add((publish or target.publication)(number))
    return check


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let groups have so many times the trials that they are allowed."""
    lowered = CountedLimits.lowered

    def scale(factor: float) -> None:
        monkeypatch.setattr(
            CountedLimits, "lowered", lambda *given: np.rint(factor * lowered(*given))
        )

    return scale


def test_what_is_published_keeps_the_promise(target: AttackedTable) -> None:
    check = checked(target)
    assert check.smallest >= POLICY.doubt
    assert check.row()["over_limit"] == 0.0
    assert abs(check.worst_class().score) < 4.0


def test_thirty_percent_more_trials_are_predicted_to_break_it(
    target: AttackedTable, scaled: Callable[[float], None]
) -> None:
    scaled(1.3)
    check = checked(target)
    assert check.smallest < POLICY.doubt
    assert check.row()["over_limit"] > 1.0
    # The prediction itself still holds: it is made for the trials that groups rest on.
    assert abs(check.worst_class().score) < 4.0


@pytest.mark.parametrize(("factor", "sign"), [(1.3, -1.0), (0.7, 1.0)])
def test_other_trials_than_the_release_says_are_seen(
    target: AttackedTable, scaled: Callable[[float], None], factor: float, sign: float
) -> None:
    said = [target.publication(number).cube.trials for number in range(KEYS)]
    scaled(factor)

    def publish(number: int) -> Publication:
        published = target.publication(number)
        return replace(published, cube=replace(published.cube, trials=said[number]))

    worst = checked(target, publish).worst_class()
    assert sign * worst.score > 5.0
    assert np.sign(worst.seen - worst.predicted) == sign


def test_single_values_are_judged_only_by_enough_keys(target: AttackedTable) -> None:
    """Below δ by three standard errors: with 60 keys no count is, with 600 up to 13 are."""
    own = PromiseCheck.of(target).own
    own.keys = 60
    assert own.below(POLICY.doubt) == 0
    own.keys = 600
    own.high[:] = 13
    own.low[:] = 14
    assert own.below(POLICY.doubt) == own.high.size
    own.high[:] = 14
    assert own.below(POLICY.doubt) == 0
