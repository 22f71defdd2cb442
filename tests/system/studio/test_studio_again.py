"""Beyond the first walk: publishing again, answers still to come, another tab."""

from __future__ import annotations

import zipfile
from pathlib import Path

from playwright.sync_api import Page, expect

from studio_walk import (
    choose_example,
    choose_roles,
    current_verdict,
    download,
    enter,
    on_step,
    open_policy,
    publish,
    set_dial,
    studio,
    to_ask,
    to_download,
    to_policy,
    to_publish,
    to_roles,
)


def test_two_publications_have_one_key_and_an_old_release_says_so(
    page: Page, adult_csv: Path, tmp_path: Path
) -> None:
    with studio() as running:
        enter(page, running)
        page.fill("#path", str(adult_csv))
        page.press("#path", "Enter")
        expect(page.locator("#opened .card")).to_contain_text("adult.csv")
        to_roles(page)
        choose_roles(page, "income", ("race", "sex"))
        to_policy(page)
        to_publish(page)
        choice = page.locator("#key_choice")
        expect(choice.locator(".radio").first).to_contain_text("Generate a new key")
        publish(page)
        expect(page.locator(".key-notice")).to_contain_text("until it closes")
        first = download(page, "get_table_key", tmp_path).read_text()
        expect(choice.locator(".radio:has(:checked)")).to_contain_text("Use this table’s key")
        expect(choice).to_contain_text("Make another key")
        page.click("#back_4")
        set_dial(page, "p", "0.4")
        current_verdict(page)
        page.click("#goto_5")
        on_step(page, 5)
        expect(page.locator("#stale")).to_contain_text("p: 0.49 → 0.4")
        expect(page.locator("#release_mark")).to_contain_text("older than your settings")
        page.click("#republish")
        on_step(page, 4)
        expect(page.locator("#publishing")).to_contain_text("independent second sample")
        expect(page.locator("#second_sample")).to_have_count(0)
        page.click("#publish")
        refused = page.locator("#publish_note .notice")
        expect(refused).to_contain_text("tick “Publish a second sample” below")
        page.get_by_label("Publish a second sample").check()
        page.click("#publish")
        expect(page.locator("#publishing")).to_contain_text("an adversary can average the two")
        expect(refused).to_have_count(0)
        expect(page.locator("#second_sample")).to_have_count(0)
        with zipfile.ZipFile(download(page, "get_table_ledger", tmp_path)) as archive:
            lines = archive.read("reconpriv.key.ledger").count(b"\n")
        assert lines == 2
        to_download(page)
        expect(page.locator("#stale .notice")).to_have_count(0)
        expect(page.locator("#release_mark .tag")).to_have_count(0)
        assert download(page, "get_key", tmp_path).read_text() == first
        to_ask(page)
        page.select_option("#ask_by", "race")
        page.select_option("#ask_value", label=">50K")
        page.select_option("#estimator", "constrained")
        page.click("#ask")
        expect(page.locator("#answers tbody tr")).to_have_count(5)
        expect(page.locator("#answers .card")).to_contain_text("Estimator: possible.")


# Every state that the verdict takes, until it is about the settings as they stand.
STATES = """
(change) => new Promise((resolve) => {
  const place = document.getElementById("verdict");
  const seen = [];
  const look = () => {
    const judged = place.querySelector(".judged");
    const busy = judged?.getAttribute("aria-busy") === "true";
    seen.push([busy, judged ? judged.textContent : ""]);
    if (judged && !busy) { watcher.disconnect(); resolve(seen); }
  };
  const watcher = new MutationObserver(look);
  watcher.observe(place, { childList: true, subtree: true });
  const select = document.getElementById(change[0]);
  select.value = change[1];
  select.dispatchEvent(new Event("change", { bubbles: true }));
})
"""


def test_a_verdict_in_the_making_is_never_shown_as_current(page: Page) -> None:
    """Exact tails take seconds: until they are there, the old verdict is greyed."""
    with studio("example:adult", "-s", "occupation") as running:
        open_policy(page, running, missing="value")
        page.select_option("#preset", "paper")
        expect(page.locator("#bound")).to_have_value("chernoff")
        current_verdict(page)
        page.evaluate(STATES, ["sample_size", "paper"])
        page.wait_for_selector("#details .judged:not(.stale)")
        before = page.text_content("#verdict .judged")
        seen = page.evaluate(STATES, ["bound", "exact"])
        assert len(seen) >= 2
        assert all(busy and "Recomputing…" in text for busy, text in seen[:-1])
        assert seen[-1][1] != before
        expect(page.locator("#verdict .judged:not(.stale)")).to_have_css("opacity", "1")
        expect(page.locator("#details .judged:not(.stale)")).to_be_visible(timeout=60_000)


def test_an_identifier_is_published_only_where_its_box_is_ticked(page: Page) -> None:
    with studio("example:adult", "-s", "income") as running:
        open_policy(page, running, "income", ("fnlwgt", "sex"))
        first = page.locator("#verdict .notice").first
        expect(first).to_contain_text("Not ready to publish")
        to_publish(page)
        box = page.get_by_label("Publish the identifier-like column fnlwgt as it is")
        expect(box).not_to_be_checked()
        page.click("#publish")
        note = page.locator("#publish_note .notice")
        expect(note).to_contain_text("nearly unique")
        assert "--" not in note.inner_text()
        box.check()
        publish(page)
        expect(note).to_have_count(0)
        to_download(page)
        expect(page.locator("#command_text")).to_contain_text("--keep-identifier fnlwgt")


def test_a_second_tab_says_what_another_one_changed(page: Page) -> None:
    with studio() as running:
        enter(page, running)
        choose_example(page)
        other = page.context.new_page()
        other.goto(running.origin)
        other.wait_for_selector("body[data-connected=yes]")
        expect(other.locator(".elsewhere")).to_have_count(0)
        other.click("#goto_1")
        other.click("#example_census_workers")
        bar = page.locator(".elsewhere")
        expect(bar).to_contain_text("Another tab opened example:census_workers")
        expect(other.locator(".elsewhere")).to_have_count(0)
        bar.get_by_role("button").click()
        page.wait_for_selector("body[data-connected=yes]")
        expect(page.locator("#opened")).to_contain_text("census_workers")
        expect(page.locator(".elsewhere")).to_have_count(0)
