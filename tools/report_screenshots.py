"""Pictures of both reports for docs/screenshots, light and dark, wide and narrow."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import reconpriv as rp

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
CHROMIUM = "/usr/bin/chromium"
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
COLOURS = 128  # a screen has few: with a palette a file is a third of its size


def reports(folder: Path) -> dict[str, Path]:
    """Both reports on the bundled table, by name."""
    found = {"internal": folder / "internal.html", "analyst": folder / "analyst.html"}
    columns = ["age", "sex", "race"]
    with rp.read("example:adult", sensitive="occupation", public=columns, missing="value") as table:
        release = table.publish(out=folder / "release", key=rp.Key.test())
        table.report(rp.preset("recommended"), found["internal"], release=release)
        release.report(found["analyst"])
    return found


def shoot(page: Page, file: Path) -> None:
    """The whole page as it is shown now."""
    page.wait_for_selector(".chart svg")
    page.wait_for_timeout(500)
    page.screenshot(path=file, full_page=True)
    Image.open(file).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        file, optimize=True
    )


def main() -> None:
    """Every report in every width and scheme."""
    warnings.simplefilter("ignore", rp.ReconprivWarning)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for report, file in reports(Path(name)).items():
            for width in WIDTHS:
                for scheme in SCHEMES:
                    size = {"width": width, "height": 900}
                    page = browser.new_page(viewport=size, color_scheme=scheme)
                    page.goto(file.as_uri())
                    shoot(page, FOLDER / f"report-{report}-{scheme}-{width}.png")
                    page.close()
        browser.close()


if __name__ == "__main__":
    main()
