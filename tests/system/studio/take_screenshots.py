"""Pictures of every step for docs/screenshots: take_screenshots.py FOLDER."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from reconpriv.studio.server.serve import own_folder
from reconpriv.studio.work.workspace import Workspace
from studio_walk import choose_roles, connected, current_verdict, go_on, publish, served

CHROMIUM = "/usr/bin/chromium"


def shoot(page, folder, name):
    page.evaluate("window.scrollTo(0, 0)")
    # A picture of the whole page has its end where the page has it.
    page.add_style_tag(content=".footer { position: static !important; }")
    page.wait_for_timeout(500)
    file = folder / f"studio-{name}.png"
    page.screenshot(path=file, full_page=True)
    try:
        from PIL import Image
    except ModuleNotFoundError:
        warnings.warn("Without pillow the files are three times as large.", stacklevel=2)
        return
    # A screen has few colours: a palette makes the file a third of its size.
    Image.open(file).convert("RGB").quantize(256).save(file, optimize=True)


def walk(page):
    """Fill every step, and give its name once it can be shown."""
    page.click("#example_adult")
    page.wait_for_selector("#opened .card")
    yield "1-table"
    go_on(page, 1)
    choose_roles(page, "occupation", ("age", "race", "sex"))
    page.get_by_label("Bins of age").fill("5")
    page.select_option("#missing", "value")
    page.wait_for_selector("#columns_check .result:not(.stale)", timeout=60_000)
    yield "2-roles"
    go_on(page, 2)
    current_verdict(page)
    for part in ("#details table", "#columns_part table", "#advice .notice", "#picture svg"):
        page.wait_for_selector(part, timeout=60_000)
    yield "3-policy"
    go_on(page, 3)
    publish(page)
    yield "4-publish"
    go_on(page, 4)
    page.wait_for_selector("#get_internal_report", timeout=60_000)
    yield "5-download"
    go_on(page, 5)
    ask(page)
    yield "6-ask"


def ask(page):
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


def main(folder, widths=(1280, 390), schemes=("light", "dark")):
    """Each step as it is filled, light and dark, wide and narrow."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, own_folder() as home:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        workspace = Workspace(home)
        with served(workspace) as address:
            page = browser.new_page(viewport={"width": widths[0], "height": 900})
            page.on("pageerror", lambda e: print("error:", e))
            page.goto(address)
            connected(page)
            for step in walk(page):
                for width in widths:
                    page.set_viewport_size({"width": width, "height": 900})
                    for scheme in schemes:
                        page.emulate_media(color_scheme=scheme)
                        shoot(page, folder, f"{step}-{scheme}-{width}")
                page.set_viewport_size({"width": widths[0], "height": 900})
            page.close()
        workspace.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
