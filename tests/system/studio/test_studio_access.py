"""Accessibility: axe-core on every step, light and dark; nothing runs off a narrow screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from studio_walk import (
    choose_roles,
    enter,
    on_step,
    publish,
    studio,
    to_ask,
    to_download,
    to_policy,
    to_publish,
)

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
SERIOUS = ("serious", "critical")


def faults(page: Page, *rules: str) -> list[str]:
    """What axe-core calls serious or critical, with where it is."""
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found: dict[str, Any] = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{fault['id']}: {node['target']} {node['failureSummary']}"
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


def check(page: Page) -> None:
    """All rules in light, those that a theme can break in dark, then the width of a phone."""
    page.emulate_media(color_scheme="light")
    assert faults(page) == []
    page.emulate_media(color_scheme="dark")
    assert faults(page, "color-contrast", "link-in-text-block") == []
    page.set_viewport_size({"width": 390, "height": 844})
    width = page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= 390
    page.set_viewport_size({"width": 1280, "height": 900})


def visit(page: Page) -> Iterator[str]:
    """Every step, filled, and the places where explanations stand."""
    page.wait_for_selector("select.role")
    page.click("#next_2")
    expect(page.locator("#roles_note .notice")).to_be_visible()
    yield "roles, with an explanation"
    page.click("#goto_1")
    on_step(page, 1)
    expect(page.locator("#opened .card")).to_be_visible()
    yield "table"
    page.click("#next_1")
    on_step(page, 2)
    choose_roles(page, "income", ("race", "sex", "age"))
    to_policy(page)
    page.wait_for_selector("#details svg")
    yield "policy"
    to_publish(page)
    page.check("input[name=key_kind][value=own]")
    expect(page.locator("#publish")).to_be_visible()
    yield "publish, with a key of one's own"
    publish(page, "test")
    yield "published"
    to_download(page)
    expect(page.locator("#recipes pre").first).to_be_visible()
    yield "download"
    to_ask(page)
    page.wait_for_selector("#ask_by")
    page.select_option("#ask_by", "race")
    page.click("#ask")
    expect(page.locator("#answers table")).to_be_visible()
    yield "ask"


def test_every_step_is_accessible_in_both_themes_and_fits_a_phone(browser: Browser) -> None:
    with studio("example:adult") as running:
        # The page's own policy allows no foreign script, and axe is one.
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, bypass_csp=True, reduced_motion="reduce"
        )
        context.add_init_script(AXE)
        page = context.new_page()
        enter(page, running)
        for _ in visit(page):
            check(page)
        context.close()
