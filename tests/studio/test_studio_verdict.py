"""A verdict agrees with its figures, and holds for the settings it was computed for alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from htmltools import tags
from shiny import reactive

import reconpriv as rp
from reconpriv.studio.desk import Desk, Settled
from reconpriv.studio.live import Live
from reconpriv.studio.plan import Roles
from reconpriv.studio.step_ask import number
from reconpriv.studio.targets import (
    effects,
    parameter_changes,
    standing,
    target_of,
    weakens,
)
from reconpriv.studio.verdict import Judged, details_cards, group_verdict, shown, verdict_card

POLICY = rp.Policy(0.5, 0.5, 0.3)
TONES = {"good": "good", "warning": "warn", "error": "bad"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def settled(desk: Desk) -> Settled:
    roles = Roles("occupation", ("age", "race", "sex"), missing="value")
    return desk.settle(desk.look("example:adult"), roles)


@pytest.fixture(scope="module")
def tuner(settled: Settled) -> Any:
    return settled.table.tuner()


@pytest.mark.parametrize("one_trial", [False, True])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("size", ["octave", "public", "paper", "none"])
def test_the_colours_agree_with_the_sentence(
    settled: Settled, tuner: Any, size: str, p: float, one_trial: bool
) -> None:
    """A green tick never stands above a red number; the number after carries the verdict."""
    found = tuner.setting(rp.Policy(p, 0.9, 0.9 if p > 0.9 else 0.3, sample_size=size))
    kind, _ = group_verdict(found, one_trial=one_trial)
    html = str(verdict_card(settled, found, one_trial=one_trial))
    used = {tone for tone in TONES.values() if f'class="figure {tone}"' in html}
    assert used == {TONES[kind]}
    before = html[html.index("the raw table, only perturbed") : html.index("what the release")]
    assert f"<dd>{found.violating_groups:,}</dd>" in before
    assert not any(tone in before for tone in TONES.values())


def test_all_kinds_of_verdict_are_among_them(tuner: Any) -> None:
    """Or the test above would not say much."""
    loose, strict = rp.Policy(0.1, 0.3, 0.1), rp.Policy(0.95, 0.9, 0.9)
    kinds = {
        group_verdict(tuner.setting(policy), one_trial=one_trial)[0]
        for policy, one_trial in ((loose, False), (strict, False), (strict, True))
    }
    assert kinds == {"good", "warning", "error"}


def test_a_result_holds_for_its_own_table_and_policy_alone(settled: Settled) -> None:
    judged = Judged(settled, POLICY, "found")
    assert judged.holds_for(settled, rp.Policy(0.5, 0.5, 0.3))
    assert not judged.holds_for(settled, rp.Policy(0.51, 0.5, 0.3))
    assert not judged.holds_for(settled, rp.Policy(0.5, 0.5, 0.3, sample_size="paper"))
    assert not judged.holds_for(None, POLICY)
    other = Settled(settled.opened, settled.roles, settled.table)
    assert not judged.holds_for(other, POLICY)


def test_a_result_that_does_not_hold_is_greyed_and_busy() -> None:
    stale = str(shown(tags.p("private"), current=False))
    assert 'aria-busy="true"' in stale
    assert "Recomputing…" in stale
    assert "aria-busy" not in str(shown(tags.p("private"), current=True))


def test_groups_are_named_by_their_columns(desk: Desk, settled: Settled) -> None:
    report = desk.audit(settled, POLICY, worst=1)
    html = str(details_cards(report))
    worst = report.worst[0].public
    assert f"age={worst['age']}, race={worst['race']}, sex={worst['sex']}" in html


def wish(**values: float) -> Any:
    return target_of({"max_error": None, "rho2": None, "min_group_error": None, **values})


def test_every_target_says_where_the_policy_stands(tuner: Any) -> None:
    found = tuner.setting(POLICY)
    for name, met in (("max_error", found.error * 1.1), ("rho2", found.posterior + 0.01),
                      ("min_group_error", found.group_error * 0.9)):  # fmt: skip
        assert ">met<" in str(standing(name, wish(**{name: met}), found))
    for name, missed in (("max_error", found.error * 0.9), ("rho2", found.posterior - 0.01),
                         ("min_group_error", found.group_error * 1.1)):  # fmt: skip
        assert ">not met<" in str(standing(name, wish(**{name: missed}), found))
    assert "met<" not in str(standing("rho2", wish(), found))


def test_a_suggestion_says_what_it_changes(tuner: Any) -> None:
    mine, other = tuner.setting(POLICY), tuner.setting(rp.Policy(0.62, 0.5, 0.3))
    assert parameter_changes(mine, other) == ["p 0.50 → 0.62"]
    belief = f"A belief of 10 % can grow to {other.posterior:.0%} instead of {mine.posterior:.0%}."
    assert belief in effects(mine, other)
    assert weakens(mine, other)
    assert not weakens(other, mine)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.25, "3.2"), (-0.4, "-0.4"), (99.96, "100.0"), (1234.5, "1,234"), (17, "17")],
)
def test_small_counts_have_a_decimal(value: float, text: str) -> None:
    assert number(value) == text


def page_of(desk: Desk) -> Live:
    return Live(
        desk,
        None,  # type: ignore[arg-type]
        step=reactive.value(desk.step),
        opened=reactive.value(desk.opened),
        settled=reactive.value(desk.settled),
        published=reactive.value(desk.published),
        policy=reactive.value(None),
        seen=desk.revision,
    )


def test_a_page_learns_what_another_one_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    one, two = page_of(desk), page_of(desk)
    one.keep({"p": 0.5})  # the first values of a page are no change
    two.keep({"p": 0.5})
    assert one.changed_elsewhere() == two.changed_elsewhere() == ""
    one.keep({"p": 0.6})
    assert one.changed_elsewhere() == ""
    assert "settings" in two.changed_elsewhere()
    two.keep({"p": 0.7})  # a change of its own does not hide what it missed
    assert two.changed_elsewhere()
    assert one.changed_elsewhere()
    late = page_of(desk)
    assert late.changed_elsewhere() == ""
    desk.look("example:adult")
    late.touch()
    assert "example:adult" in two.changed_elsewhere()
    desk.close()
