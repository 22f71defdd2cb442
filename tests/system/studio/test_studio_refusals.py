"""What the ledger refuses on the page: each reason has a box, and both may be needed."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from studio_walk import choose_roles, open_policy, studio, to_policy, to_publish

SECRET = bytes((37 * i + 5) % 256 for i in range(32)).hex()


def other_roles(page: Page, sensitive: str, public: tuple[str, ...]) -> None:
    page.click("#goto_2")
    choose_roles(page, sensitive, public)
    to_policy(page)
    to_publish(page)


def test_an_unknown_ledger_and_two_reasons_for_one_refusal(page: Page) -> None:
    with studio("example:adult") as running:
        open_policy(page, running, "income", ("race", "sex"))
        to_publish(page)
        page.check("input[name=key_kind][value=own]")
        page.fill("#key_text", SECRET)
        page.click("#publish")
        expect(page.locator("#key_note_place")).to_contain_text("came without its ledger")
        expect(page.locator("#publishing .notice.good")).to_have_count(0)
        page.get_by_label("This key was never used").check()
        page.click("#publish")
        expect(page.locator("#publishing .notice.good")).to_be_visible()
        expect(page.locator("#key_unused")).to_have_count(0)
        expect(page.locator("#key_note_place .notice")).to_have_count(0)

        other_roles(page, "sex", ("race", "income"))
        page.click("#publish")
        note, done = page.locator("#publish_note"), page.locator("#publishing")
        expect(note).to_contain_text("would make 'income' public and 'sex' sensitive")
        expect(page.locator("#second_sample")).to_have_count(0)
        page.locator("#role_change").check()
        page.click("#publish")
        expect(done).to_contain_text("one tells what the other hides")

        other_roles(page, "income", ("race",))
        page.click("#publish")
        expect(note).to_contain_text("'income' was public")
        expect(page.locator("#role_change")).not_to_be_checked()
        page.locator("#role_change").check()
        page.click("#publish")
        expect(note).to_contain_text("a second, independent sample")
        expect(page.locator("#role_change")).to_be_checked()
        page.locator("#second_sample").check()
        page.click("#publish")
        expect(done).to_contain_text("an adversary can average the two")
        expect(page.locator("#refusal_boxes .card")).to_have_count(0)
