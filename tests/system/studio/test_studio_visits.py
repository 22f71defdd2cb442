"""A table with an identifier, a giveaway and people with several rows, from proposal to release."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import reconpriv as rp
from studio_walk import (
    current_verdict,
    download,
    enter,
    on_step,
    publish,
    role_of,
    studio,
    to_download,
    to_policy,
    to_publish,
)

COLUMNS = ("serial", "patient", "region", "height", "ct", "result")


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """140 patients with three visits each; a ct below 45 is a positive result."""
    rng = np.random.default_rng(5)
    file = tmp_path_factory.mktemp("visits") / "visits.csv"
    lines = [",".join(COLUMNS)]
    for i in range(420):
        positive = rng.random() < 0.25
        ct = 14 + int(rng.integers(30)) if positive else 45
        who, where, height = f"P{i // 3:04}", "NSEW"[i * 7 % 4], 40 + rng.integers(400) / 8
        result = "positive" if positive else "negative" if i % 9 else "unclear"
        lines.append(f"{100_000 + 7 * i},{who},{where},{height},{ct},{result}")
    file.write_text("\n".join(lines) + "\n")
    return file


def roles_of(page: Page) -> list[str]:
    return [page.locator(f"#{role_of(page, name)}").input_value() for name in COLUMNS]


def give(page: Page, **roles: str) -> None:
    for name, role in roles.items():
        page.select_option(f"#{role_of(page, name)}", role)


def test_a_table_is_refused_until_it_is_fixed_or_accepted(
    page: Page, visits: Path, tmp_path: Path
) -> None:
    with studio(str(visits)) as running:
        enter(page, running)
        page.wait_for_selector("select.role")
        assert roles_of(page) == ["drop", "person", "public", "public", "public", "public"]
        expect(page.get_by_label("Bins of height")).not_to_have_value("")
        # Once a column is sensitive, one that tells it is left out, with a word; but only once.
        give(page, result="sensitive")
        said = page.locator(".role-said:not(:empty)")
        expect(said).to_contain_text("Left out: it tells the sensitive value of")
        expect(page.locator("#told_note .notice.warning")).to_contain_text("'ct' tells")
        assert roles_of(page) == ["drop", "person", "public", "public", "drop", "sensitive"]
        give(page, ct="public", serial="public")
        page.reload()
        expect(page.locator("#told_note .notice.warning")).to_contain_text("'ct' tells")
        assert roles_of(page) == ["public", "person", "public", "public", "public", "sensitive"]
        # The choice for people with several rows is there only if a column says who they are.
        rows = page.get_by_label("People with several rows")
        expect(rows).to_be_visible()
        give(page, patient="drop")
        expect(rows).to_be_hidden()
        give(page, patient="person")
        to_policy(page)
        for words in ("'serial' (420 values) is nearly unique", "140 of 140 people have several",
                      "'ct' tells 'result'", "are unique on the public columns"):  # fmt: skip
            expect(page.locator("#verdict .notice.error", has_text=words).first).to_be_visible()
        to_publish(page)
        note, boxes = page.locator("#publish_note .notice.error"), page.locator("#obstacles")
        expect(boxes.locator(".notice.error")).to_have_count(4)
        page.click("#publish")
        expect(note).to_contain_text("Nothing was published: public column 'serial'")
        for box in boxes.locator("input").all():
            box.check()
        page.click("#publish")
        expect(note).to_contain_text("140 of 140 people have several rows")
        # The safe way: no serial number, one row of each. What ct tells is accepted.
        page.click("#goto_2")
        give(page, serial="drop")
        page.get_by_label("Bins of height").fill("25")
        rows.select_option("one")
        page.click("#next_2")
        on_step(page, 3)
        current_verdict(page)
        expect(page.locator("#verdict .promise")).to_contain_text("one row each, as was checked")
        to_publish(page)
        expect(boxes.locator("input")).to_have_count(1)
        page.click("#publish")
        expect(note).to_contain_text("'ct' tells 'result'")
        page.get_by_label("Publish ct as it is").check()
        publish(page)
        to_download(page)
        with zipfile.ZipFile(download(page, "get_release", tmp_path)) as archive:
            archive.extractall(tmp_path)
        assert rp.open(tmp_path / "release").as_dict()["records"] == 140
        script = download(page, "get_script", tmp_path).read_text()
        assert "person='patient'" in script and "keep_giveaway=['ct']" in script
        assert "keep_identifier" not in script and "max_unique" not in script
