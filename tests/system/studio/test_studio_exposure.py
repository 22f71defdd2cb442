"""Presets, exposed and harmless values in the studio: controls, verdict, recipes, a second time."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

import reconpriv as rp
from reconpriv.presets import PRESETS, Fitted, preset
from reconpriv.studio.changes import policy_changes, same_key_means
from reconpriv.studio.desk import Desk
from reconpriv.studio.plan import Plan, Roles, python_script, read_table, shell_command
from reconpriv.studio.policy_controls import (
    controls_of,
    harmless_boxes,
    policy_of,
    said_of,
    suited,
)
from reconpriv.studio.step_policy import count_cells, try_settings
from reconpriv.studio.targets import WISHES, Asked, target_of
from reconpriv.studio.verdict import margin_verdict, verdict_card
from studio_walk import (
    choose_roles,
    current_verdict,
    enter,
    on_step,
    publish,
    set_dial,
    studio,
    to_download,
    to_policy,
    to_publish,
)

POLICY = preset("paper")
RECOMMENDED = preset("recommended")
ROLES = Roles("occupation", ("age", "race", "sex"), missing="value")


@pytest.mark.parametrize("name", PRESETS)
def test_the_controls_show_every_preset_as_it_is(name: str) -> None:
    assert policy_of(controls_of(preset(name))) == preset(name)
    assert "Changed" not in str(said_of(PRESETS[name], suited(PRESETS[name], None), preset(name)))


def test_a_changed_preset_says_what_was_changed() -> None:
    changed = replace(RECOMMENDED, delta=0.1, harmless=("a", None), news_only=True)
    words = str(said_of(PRESETS["recommended"], Fitted(RECOMMENDED, ("A note.",)), changed))
    assert "A note." in words
    assert "Changed from recommended" in words
    assert "δ: 0.05 → 0.1; harmless values: none → a, (missing); news only: no → yes." in words


@pytest.mark.parametrize(
    "change", [{"exposed_above": 0.5}, {"harmless": ("a",)}, {"news_only": True}], ids=str
)
def test_what_counts_as_exposed_changes_trials_only(change: dict[str, Any]) -> None:
    """Unlike p, which draws a second sample."""
    roles, other = Roles("s", ("a",)), replace(POLICY, **change)
    assert len(policy_changes(POLICY, other)) == 1
    before = Plan("t.csv", roles, POLICY)
    assert "shares its trials" in same_key_means(before, replace(before, policy=other))
    resampled = replace(before, policy=replace(other, retention=0.4))
    assert "second sample" in same_key_means(before, resampled)


DAYS = [date(2026, 1, 1), date(2026, 1, 2), None]
TEXTS = ["a, b", 'c "d"', "NULL", None]


@pytest.mark.parametrize(
    ("values", "harmless"),
    [(TEXTS, ("a, b", 'c "d"')), (TEXTS, ("NULL",)), (DAYS, (DAYS[1], None)), ([1, 2, 3], (2,))],
    ids=str,
)
def test_script_and_command_make_the_same_choice(
    values: list[Any],
    harmless: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files_of: Callable[..., Any],
    cli: Callable[..., Any],
) -> None:
    rows = range(900)
    data = {"s": [values[i // 7 % len(values)] for i in rows], "town": [i % 3 for i in rows]}
    pq.write_table(pa.table(data), tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    roles = Roles("s", ("town",), missing="value")
    policy = replace(RECOMMENDED, exposed_above=0.1, harmless=harmless, news_only=True)
    plan = Plan("t.parquet", roles, policy, test_key=True)
    with read_table(plan.source, roles) as table:
        table.publish(policy, tmp_path / "mine", key=rp.Key.test())
    exec(python_script(plan), {})
    (tmp_path / "release").rename(tmp_path / "first")
    words = shlex.split(shell_command(plan).replace("\\\n", " "))
    assert cli(*words[1:]).code == 0
    mine = files_of(tmp_path / "mine")
    assert files_of(tmp_path / "first") == mine == files_of(tmp_path / "release")


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_the_verdict_speaks_of_the_promise_and_of_people(desk: Desk) -> None:
    settled = desk.settle(desk.look("example:adult"), ROLES)
    tuner = count_cells(desk, settled).tuner
    policy = tuner.settled(replace(RECOMMENDED, harmless=("Sales",), news_only=True))
    assert policy == settled.table.settled(policy)
    found, report = tuner.setting(policy), desk.audit(settled, policy, worst=1)
    assert 0 < found.reconstructed < found.worst_group < 1
    html = str(verdict_card(report, policy, found)).replace("\xa0", " ")
    for words in (
        report.promise,
        report.not_promised,
        f"<dd>{found.reconstructed:.1%}</dd>",
        f"<dd>{found.worst_group:.1%}</dd>",
        f"<dd>{found.posterior:.0%}</dd>",
        "estimated within ±50%",
    ):
        assert words in html, words


def test_a_policy_that_exposes_nothing_has_a_verdict(desk: Desk) -> None:
    settled = desk.settle(desk.look("example:adult"), Roles("income", ("race", "sex")))
    counted, policy = count_cells(desk, settled), replace(RECOMMENDED, exposed_above=0.9)
    policy = counted.tuner.settled(replace(policy, harmless=("<=50K",)))
    report = desk.audit(settled, policy, worst=1)
    words = str(verdict_card(report, policy, counted.tuner.setting(policy)))
    assert "no group has a value that counts as exposed" in words
    assert re.search(r"\binf\b", words) is None
    asked = Asked(policy, target_of(dict.fromkeys(WISHES)), weaker=False)
    assert try_settings(counted, asked).chart is None


def test_margins_of_a_policy_with_harmless_values_are_judged(desk: Desk) -> None:
    """An audit knows more about such a policy than the controls do; it is still the same policy."""
    settled = desk.settle(desk.look("example:adult"), ROLES)
    policy = replace(POLICY, harmless=("Sales",), margins=1.0)
    report = desk.audit(settled, policy, worst=1)
    assert report.margins is not None
    assert margin_verdict(report, policy) == ("info", report.margins.sentence)


def test_every_value_can_be_called_harmless_even_a_missing_one(desk: Desk) -> None:
    settled = desk.settle(desk.look("example:adult"), ROLES)
    html = str(harmless_boxes(settled, ["null"]))
    assert html.count('type="checkbox"') == 15
    assert html.count("checked") == 1
    assert "(missing)" in html


def test_presets_and_harmless_values_from_the_menu_to_the_release(
    page: Page, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    ill = np.array(["cold", "flu", "well"])[rng.choice(3, 1_200, p=[0.3, 0.1, 0.6])]
    people = {"town": rng.integers(0, 6, 1_200), "sex": rng.choice(["f", "m"], 1_200), "ill": ill}
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    with studio(str(tmp_path / "people.parquet"), "-s", "ill") as running:
        enter(page, running)
        choose_roles(page, "ill", ("town", "sex"))
        to_policy(page)
        verdict, words = page.locator("#verdict .judged:not(.stale)"), page.locator("#preset_words")
        expect(verdict).to_contain_text("that more than 25 % of them hold")
        page.select_option("#preset", "paper")
        expect(verdict).to_contain_text("for every value that occurs among them")
        page.select_option("#preset", "recommended")
        expect(page.locator("#phi_number")).to_have_value("0.25")
        expect(page.locator("#bound")).to_have_value("exact")
        expect(verdict).to_contain_text("with a probability of at least 5 %")
        expect(words).not_to_contain_text("Changed")
        page.locator(".harmless summary").click()
        page.get_by_label("well", exact=True).check()
        set_dial(page, "phi", "0.1")
        page.check("#news_only")
        expect(words).to_contain_text("harmless values: none → well; news only: no → yes")
        expect(verdict).to_contain_text('except "well"')
        for name in ("cold", "flu"):
            page.get_by_label(name, exact=True).check()
        expect(page.locator("#policy_note")).to_contain_text("there is nothing to protect")
        for name in ("cold", "flu"):
            page.get_by_label(name, exact=True).uncheck()
        current_verdict(page)
        to_publish(page)
        expect(page.locator("#plan_facts")).to_contain_text("that more than 10 % of them hold")
        publish(page)
        page.reload()
        page.wait_for_selector("body[data-connected=yes]")
        expect(page.locator("#publishing")).not_to_contain_text("Changed since")
        expect(page.locator("#plan_facts")).to_contain_text('except "well"')
        page.click("#back_4")
        on_step(page, 3)
        expect(page.get_by_label("well", exact=True)).to_be_checked()
        expect(page.locator("#news_only")).to_be_checked()
        page.click("#preset_again")
        expect(page.get_by_label("well", exact=True)).not_to_be_checked()
        expect(page.locator("#phi_number")).to_have_value("0.25")
        expect(words).not_to_contain_text("Changed")
        current_verdict(page)
        to_publish(page)
        expect(page.locator("#publishing")).to_contain_text("harmless values: well → none")
        expect(page.locator("#publishing")).to_contain_text("gives no second sample away")
        publish(page)
        expect(page.locator("#publishing")).not_to_contain_text("Changed since")
        to_download(page)
        expect(page.locator("#command_text")).to_contain_text("--exposed-above 0.25")
        expect(page.locator("#command_text")).to_contain_text("--margins 1.0")
        expect(page.locator("#command_text")).not_to_contain_text("--harmless")
