"""Pictures of every step for docs/screenshots: take_screenshots.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from studio_walk import (
    choose_roles,
    enter,
    launch,
    on_step,
    publish,
    studio,
    to_ask,
    to_download,
    to_policy,
    to_publish,
)


def walk(page: Page, folder: Path, name: str) -> None:
    """Take a picture at every step."""

    def shoot(step: str) -> None:
        page.wait_for_timeout(500)
        file = folder / f"studio-{step}-{name}.png"
        page.screenshot(path=file, full_page=True)
        # A screen has few colours: a palette makes the file a third of its size.
        Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)

    page.click("#example_adult")
    page.wait_for_selector("#opened .card")
    shoot("1-table")
    page.click("#next_1")
    on_step(page, 2)
    choose_roles(page)
    page.get_by_label("Bins of age").fill("5")
    page.select_option("#missing", "value")
    shoot("2-roles")
    to_policy(page)
    # The dials stick to the top of a long page; a screenshot of all of it starts there.
    for part in ("#details svg", "#columns_part table", "#advice .notice"):
        page.wait_for_selector(part, timeout=60_000)
    page.evaluate("window.scrollTo(0, 0)")
    shoot("3-policy")
    to_publish(page)
    publish(page)
    shoot("4-publish")
    to_download(page)
    page.wait_for_selector("#get_internal_report", timeout=60_000)
    shoot("5-download")
    to_ask(page)
    ask(page)
    shoot("6-ask")


def ask(page: Page) -> None:
    """A count, a share by race, and a comparison."""
    cards = page.locator("#answers .card")
    page.fill("#where", "age >= 30 AND sex = 'Female'")
    page.select_option("#ask_value", label="Sales")
    page.click("#ask")
    expect(cards).to_have_count(1)
    page.get_by_label("Share", exact=True).check()
    page.select_option("#ask_by", "race")
    page.click("#ask")
    expect(cards).to_have_count(2)
    page.get_by_label("Comparison", exact=True).check()
    page.fill("#where", "age >= 30")
    page.fill("#ask_a", "sex = 'Female'")
    page.fill("#ask_b", "sex = 'Male'")
    page.click("#ask")
    expect(cards).to_have_count(3)


def main(folder: Path) -> None:
    """Light and dark, wide and narrow."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                with studio() as running:
                    page = browser.new_page(
                        viewport={"width": width, "height": 900}, color_scheme=scheme
                    )
                    page.on("console", lambda m: print("console:", m.type, m.text))
                    page.on("pageerror", lambda e: print("error:", e))
                    enter(page, running)
                    walk(page, folder, f"{scheme}-{width}")
                    page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
