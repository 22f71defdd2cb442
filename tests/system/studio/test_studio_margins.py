"""Margins in the studio: the dial, what they cost, the downloads, and the share of an answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

import reconpriv as rp
from reconpriv.studio.changes import policy_changes, same_key_means
from reconpriv.studio.plan import Plan, Roles, python_script, read_table, shell_command
from studio_walk import (
    Running,
    choose_example,
    choose_roles,
    current_verdict,
    enter,
    on_step,
    publish,
    set_dial,
    studio,
    to_ask,
    to_download,
    to_policy,
    to_publish,
    to_roles,
    upload,
)

POLICY = rp.Policy(0.5, 0.5, 0.3)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with studio() as started:
        yield started


def test_margins_from_the_dial_to_the_answer(page: Page, running: Running) -> None:
    enter(page, running)
    choose_example(page)
    choose_roles(page)
    page.select_option("#missing", "value")
    to_policy(page)
    expect(page.locator("#verdict")).to_contain_text("Margins cost")
    set_dial(page, "m", "0")
    expect(page.locator("#verdict .judged:not(.stale)")).not_to_contain_text("Margins cost")
    set_dial(page, "m", "1")
    expect(page.locator("#verdict .judged:not(.stale)")).to_contain_text("Margins cost")
    current_verdict(page)
    to_publish(page)
    expect(page.locator("#plan_facts")).to_contain_text("ε = 1, δ = 1e-9, by each public column")
    publish(page, "test")
    expect(page.locator("#publishing")).to_contain_text("3 tables (age, race, sex)")
    to_download(page)
    to_ask(page)
    page.wait_for_selector("#ask_value")
    page.select_option("#ask_value", label="Sales")
    page.click("#ask")
    expect(page.locator("#answers th", has_text="From margins")).to_be_visible()
    expect(page.locator("#answers")).to_contain_text("61 %")
    page.select_option("#estimator", "records")
    page.click("#ask")
    latest = page.locator("#answers .card").first
    expect(latest).to_contain_text("Estimator: records alone.")
    expect(latest.locator("th", has_text="From margins")).to_have_count(0)


def test_margins_that_would_give_groups_away_are_explained(page: Page, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = {"town": rng.integers(0, 4, 8_000), "ill": np.array(["y", "n"])[rng.choice(2, 8_000)]}
    pq.write_table(pa.table(rows), tmp_path / "towns.parquet")
    with studio() as alone:
        enter(page, alone)
        upload(page, tmp_path / "towns.parquet")
        to_roles(page)
        choose_roles(page, "ill", ("town",))
        page.click("#next_2")
        on_step(page, 3)
        expect(page.locator(".preset-sentence")).to_contain_text("No margins are published")
        set_dial(page, "m", "2")
        none = "No margins are published: every row of them would give a group away"
        expect(page.locator("#verdict")).to_contain_text(none)
        set_dial(page, "m", "0")
        expect(page.locator("#verdict")).not_to_contain_text(none)
        current_verdict(page)


MARGINS = [
    1.0,
    rp.Margins(0.5, 1e-6, tables=["age", ("sex", "race")]),
    rp.Margins(rho=0.02),
]


@pytest.mark.parametrize("margins", MARGINS, ids=str)
def test_script_and_command_make_the_same_margins(
    margins: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files_of: Callable[..., Any],
    cli: Callable[..., Any],
) -> None:
    roles = Roles("occupation", ("age", "sex", "race"), missing="value")
    plan = Plan("example:adult", roles, replace(POLICY, margins=margins), test_key=True)
    with read_table(plan.source, roles) as table:
        table.publish(plan.policy, tmp_path / "mine", key=rp.Key.test())
    monkeypatch.chdir(tmp_path)
    exec(python_script(plan), {})
    (tmp_path / "release").rename(tmp_path / "first")
    words = shlex.split(shell_command(plan).replace("\\\n", " "))
    assert cli(*words[1:]).code == 0
    mine = files_of(tmp_path / "mine")
    assert "margins.parquet" in {Path(name).name for name in mine}
    assert files_of(tmp_path / "first") == mine == files_of(tmp_path / "release")


def test_an_epsilon_is_written_as_it_was_set() -> None:
    plan = Plan("t.csv", Roles("s", ("a",)), replace(POLICY, margins=1.0))
    assert "    margins=1.0,\n" in python_script(plan)
    assert "--margins 1.0" in shell_command(plan)


def test_changed_margins_are_named_and_what_they_mean() -> None:
    one, two = (replace(POLICY, margins=epsilon) for epsilon in (1.0, 2.0))
    assert policy_changes(POLICY, one) == ["margins: none → ε = 1"]
    assert policy_changes(one, two) == ["margins: ε = 1 → ε = 2"]
    assert policy_changes(one, replace(one, bound="exact")) == ["tail bound: chernoff → exact"]
    plans = [Plan("t.csv", Roles("s", ("a",)), policy) for policy in (POLICY, one, two)]
    assert "their ρ add up" in same_key_means(plans[1], plans[2])
    assert "shares its trials" in same_key_means(plans[0], plans[1])
