"""Slips of a hurried user: another sensitive column, an emptied box."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from studio_walk import (
    current_verdict,
    enter,
    on_step,
    open_policy,
    role_of,
    set_dial,
    studio,
    to_publish,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People with a number, two diagnoses and an age; some lack the second diagnosis."""
    file = tmp_path_factory.mktemp("slips") / "people.csv"
    rows = [
        f"{i},{20 + i % 7},{'abc'[i % 3]},{'uvw'[i % 5 % 3] if i % 20 else ''}" for i in range(600)
    ]
    file.write_text("id,age,first,second\n" + "\n".join(rows) + "\n")
    return file


def roles_of(page: Page) -> dict[str, str]:
    names = ("id", "age", "first", "second")
    return {name: page.locator(f"#{role_of(page, name)}").input_value() for name in names}


def test_a_second_sensitive_column_gives_the_first_its_role_back(page: Page, table: Path) -> None:
    with studio(str(table), "-s", "second") as running:
        enter(page, running)
        page.wait_for_selector("select.role")
        assert roles_of(page) == {
            "id": "drop", "age": "public", "first": "public", "second": "sensitive",
        }  # fmt: skip
        said = page.locator(".role-said:not(:empty)")

        def make(name: str, role: str = "sensitive") -> None:
            page.select_option(f"#{role_of(page, name)}", role)

        # It had no role before, so nobody has said that it may be published.
        make("id")
        expect(said).to_have_text("second is no longer sensitive: it is left out.")
        assert roles_of(page)["second"] == "drop"
        make("first")
        expect(said).to_have_text("id is no longer sensitive: it is left out.")
        assert roles_of(page) == {
            "id": "drop", "age": "public", "first": "sensitive", "second": "drop",
        }  # fmt: skip
        make("age")
        expect(said).to_have_text(
            "first is no longer sensitive: it is public again, and published as it is."
        )
        make("age", "public")
        expect(said).to_have_count(0)
        make("id", "person")
        make("second", "person")
        expect(said).to_have_text("id is no longer the person’s number: it is left out.")
        assert roles_of(page) == {
            "id": "drop", "age": "public", "first": "public", "second": "person",
        }  # fmt: skip


def test_an_emptied_box_is_marked_and_nothing_can_be_published(page: Page, table: Path) -> None:
    with studio(str(table)) as running:
        open_policy(page, running, "first", ("age",), missing="drop")
        box, fault = page.locator("#e_number"), page.locator("#e_fault")
        box.fill("")
        expect(fault).to_have_text("Enter a number for ε.")
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#policy_note .notice.error")).to_contain_text("Enter a number for ε.")
        expect(page.locator("#verdict .judged")).to_have_count(0)
        page.click("#next_3")
        expect(page.locator("section[data-step='3']")).to_be_visible()
        # Nor by the other way, nor after the page is loaded again: no old value is kept.
        page.reload()
        expect(fault).to_have_text("Enter a number for ε.")
        expect(box).to_have_value("")
        page.click("#goto_4")
        on_step(page, 4)
        page.click("#publish")
        expect(page.locator("#publish_note .notice")).to_contain_text("Enter a number for ε.")
        page.click("#back_4")
        box.fill("0")
        expect(fault).to_contain_text("must be above 0")
        # The slider fills the box.
        set_dial(page, "e", "0.4")
        expect(box).to_have_value("0.4")
        expect(box).to_have_attribute("aria-invalid", "false")
        expect(fault).to_be_empty()
        current_verdict(page)
        to_publish(page)
        expect(page.locator("#plan_facts")).to_contain_text("ε = 0.4")
