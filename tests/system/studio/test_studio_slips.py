"""Slips of a hurried user: another sensitive column, an emptied box."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from studio_walk import enter, role_of, studio


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
