"""What only a page can show of each step: controls that move each other, and what is redrawn."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import ROLES
from playwright.sync_api import expect

import reconpriv as rp
from reconpriv.policy.presets import preset
from reconpriv.studio.pieces.policy_controls import controls_of
from reconpriv.studio.steps import choose_policy
from reconpriv.studio.work.workspace import CancelledError, Workspace
from studio_walk import (
    CURRENT,
    choose_roles,
    connected,
    current_verdict,
    download,
    enter,
    go_on,
    on_step,
    publish,
    reload,
    role_of,
    served,
    set_dial,
)
from studio_workspace import load, prepared

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
SERIOUS = ("serious", "critical")


def roles_now(page, columns):
    return [role_of(page, name).input_value() for name in columns]


def give(page, **roles):
    for name, role in roles.items():
        role_of(page, name).select_option(role)


def test_a_second_sensitive_column_gives_the_first_its_role_back(page, workspace, show, tmp_path):
    rows = [f"{i},{20 + i % 7},{'abc'[i % 3]},{'uvw'[i % 5 % 3]}" for i in range(600)]
    (tmp_path / "t.csv").write_text("id,age,first,second\n" + "\n".join(rows) + "\n")
    workspace.look(str(tmp_path / "t.csv"))
    workspace.step, workspace.draft["sensitive"] = 2, "second"
    show()
    columns = ("id", "age", "first", "second")
    page.wait_for_selector("select.role")
    assert roles_now(page, columns) == ["drop", "public", "public", "sensitive"]
    said = page.locator(".role-said:not(:empty)")
    # It had no role before, so nobody has said that it may be published.
    give(page, id="sensitive")
    expect(said).to_have_text("second is no longer sensitive: it is left out.")
    give(page, first="sensitive")
    expect(said).to_have_text("id is no longer sensitive: it is left out.")
    assert roles_now(page, columns) == ["drop", "public", "sensitive", "drop"]
    give(page, age="sensitive")
    expect(said).to_have_text(
        "first is no longer sensitive: it is public again, and published as it is."
    )
    give(page, age="public")
    expect(said).to_have_count(0)
    give(page, id="person", second="person")
    expect(said).to_have_text("id is no longer the person’s number: it is left out.")
    assert roles_now(page, columns) == ["drop", "public", "public", "person"]


def test_roles_in_bulk_leave_the_sensitive_column_alone(page, workspace, show, people):
    workspace.look(str(people / "people.parquet"))
    workspace.step, workspace.draft["sensitive"] = 2, "job"
    show()
    columns = ("sex", "age", "town", "job", "number")
    page.wait_for_selector("select.role")
    page.fill("#find_column", "o")
    shown = page.locator("#found_columns")
    expect(shown).to_have_text("2 shown")
    page.click("[data-give=drop]")
    expect(shown).to_have_text("1 set; job stays sensitive")
    assert roles_now(page, columns) == ["public", "public", "drop", "sensitive", "drop"]
    page.fill("#find_column", "")
    page.click("[data-give=drop]")
    # What was wrong is said until something is changed.
    note = page.locator("#roles_note .notice")
    page.click("#next_2")
    expect(note).to_contain_text("at least one column public")
    give(page, town="public")
    expect(note).to_have_count(0)


COLUMNS = ("serial", "patient", "region", "height", "ct", "result")


@pytest.fixture
def visits(tmp_path):
    """140 patients with three visits each; a ct below 45 is a positive result."""
    rng = np.random.default_rng(5)
    lines = [",".join(COLUMNS)]
    for i in range(420):
        positive = rng.random() < 0.25
        ct = 14 + int(rng.integers(30)) if positive else 45
        who, where, height = f"P{i // 3:04}", "NSEW"[i * 7 % 4], 40 + rng.integers(400) / 8
        result = "positive" if positive else "negative" if i % 9 else "unclear"
        lines.append(f"{100_000 + 7 * i},{who},{where},{height},{ct},{result}")
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "visits.csv"


def test_a_table_is_refused_until_it_is_fixed_or_accepted(page, workspace, show, visits, tmp_path):
    workspace.look(str(visits))
    workspace.step = 2
    show()
    page.wait_for_selector("select.role")
    assert roles_now(page, COLUMNS) == ["drop", "person", "public", "public", "public", "public"]
    expect(page.get_by_label("Bins of height")).not_to_have_value("")
    # Once a column is sensitive, one that tells it is left out, with a word; but only once.
    give(page, result="sensitive")
    warning = page.locator("#giveaway_note .notice.warning")
    expect(page.locator(".role-said:not(:empty)")).to_contain_text(
        "Left out: it tells the sensitive value of"
    )
    expect(warning).to_contain_text("'ct' tells")
    assert roles_now(page, COLUMNS)[-2:] == ["drop", "sensitive"]
    give(page, ct="public", serial="public")
    reload(page)
    expect(warning).to_contain_text("'ct' tells")
    wanted = ["public", "person", "public", "public", "public", "sensitive"]
    assert roles_now(page, COLUMNS) == wanted
    # The choice for people with several rows is there only if a column says who they are.
    rows = page.get_by_label("People with several rows", exact=True)
    expect(rows).to_be_visible()
    give(page, patient="drop")
    expect(rows).to_be_hidden()
    give(page, patient="person")
    go_on(page, 2)
    for words in ("'serial' (420 values) is nearly unique", "140 of 140 people have several",
                  "'ct' tells 'result'", "are unique on the public columns"):  # fmt: skip
        expect(page.locator("#verdict .notice.error", has_text=words).first).to_be_visible()
    go_on(page, 3)
    note, boxes = page.locator("#publish_note .notice.error"), page.locator("#consents")
    expect(boxes.locator(".notice.error")).to_have_count(4)
    page.click("#publish")
    expect(note).to_contain_text("Nothing was published: public column 'serial'")
    assert "--" not in note.inner_text()
    for box in boxes.locator("input").all():
        box.check()
    page.click("#publish")
    expect(note).to_contain_text("140 of 140 people have several rows")
    # The safe way: no serial number, one row of each. What ct tells is accepted.
    page.click("#goto_2")
    give(page, serial="drop")
    page.get_by_label("Bins of height").fill("25")
    rows.select_option("one")
    go_on(page, 2)
    current_verdict(page)
    expect(page.locator("#verdict .promise")).to_contain_text("one row each, as was checked")
    go_on(page, 3)
    expect(boxes.locator("input")).to_have_count(1)
    expect(boxes.locator("input")).not_to_be_checked()
    page.click("#publish")
    expect(note).to_contain_text("'ct' tells 'result'")
    page.get_by_label("Publish ct as it is").check()
    publish(page)
    expect(note).to_have_count(0)
    go_on(page, 4)
    expect(page.locator("#command_text")).to_contain_text("--keep-giveaway ct")
    with zipfile.ZipFile(download(page, "get_release", tmp_path)) as archive:
        archive.extractall(tmp_path)
    assert rp.open(tmp_path / "release").as_dict()["records"] == 140
    script = download(page, "get_script", tmp_path).read_text()
    assert "person='patient'" in script and "keep_giveaway=['ct']" in script
    assert "keep_identifier" not in script and "max_unique" not in script


def test_an_emptied_box_is_marked_and_nothing_can_be_published(page, workspace, show, people):
    prepared(workspace, people / "people.parquet", ROLES)
    show()
    current_verdict(page)
    box, fault = page.locator("#tolerance_number"), page.locator("#tolerance_fault")
    box.fill("")
    expect(fault).to_have_text("Enter a number for tolerance.")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#policy_note .notice.error")).to_contain_text(
        "Enter a number for tolerance."
    )
    # What was computed before stays, in grey; the reason is in sight, wherever one is.
    expect(page.locator("#verdict .result.stale")).to_contain_text("Not for these settings")
    expect(page.locator(CURRENT)).to_have_count(0)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight / 2)")
    expect(page.locator("#policy_note .notice.error")).to_be_in_viewport()
    page.click("#next_3")
    on_step(page, 3)
    # The click leads to what is wrong.
    expect(box).to_be_focused()
    expect(box).to_be_in_viewport()
    # Nor by the other way, nor after the page is loaded again: no old value is kept.
    page.reload()
    expect(fault).to_have_text("Enter a number for tolerance.")
    expect(box).to_have_value("")
    page.click("#goto_4")
    on_step(page, 4)
    page.click("#publish")
    expect(page.locator("#publish_note .notice")).to_contain_text("Enter a number for tolerance.")
    page.click("#back_4")
    box.fill("0")
    expect(fault).to_contain_text("must be above 0")
    # Whoever does not know what to enter can go back to the preset.
    page.click("#preset_again")
    expect(box).to_have_value("0.5")
    current_verdict(page)
    box.fill("0")
    expect(fault).to_contain_text("must be above 0")
    # The slider fills the box.
    set_dial(page, "tolerance", "0.4")
    expect(box).to_have_value("0.4")
    expect(box).to_have_attribute("aria-invalid", "false")
    expect(fault).to_be_empty()
    current_verdict(page)


def test_presets_harmless_values_and_suggestions_move_the_controls(page, workspace, show, people):
    prepared(workspace, people / "people.parquet", ROLES)
    show()
    verdict, words = page.locator(CURRENT), page.locator("#preset_words")
    expect(verdict).to_contain_text("for every value that occurs among them")
    # What is suggested can be seen before the click, and is what the page shows after it.
    page.fill("#max_error", "0.9")
    expect(page.locator("#stands_max_error")).to_contain_text("met")
    page.fill("#max_error", "")
    page.fill("#max_reconstructed", "0.2")
    # The button may be enabled for the target before, until the page has heard of this one.
    expect(page.locator("#stands_max_reconstructed")).to_contain_text("met")
    expect(page.locator("#recommend")).to_be_enabled()
    promised = page.locator("#advice li", has_text="within ±50%").inner_text()
    page.click("#recommend")
    expect(words).to_contain_text("Changed from paper")
    expect(page.locator("#advice")).to_contain_text("Your policy")
    share = page.locator("#stands_max_reconstructed").inner_text().split()[1]
    assert share in promised
    figure = page.locator("#verdict .figures > div", has_text="people reconstructed")
    expect(figure.locator("span")).to_have_text(share)
    # A preset sets all controls; what is changed is said, and a button takes it back.
    page.select_option("#preset", "strict")
    expect(page.locator("#sampling")).to_have_value("public")
    expect(words).not_to_contain_text("Changed")
    page.locator(".harmless summary").click()
    page.get_by_label("clerk", exact=True).check()
    set_dial(page, "exposed_above", "0.1")
    expect(words).to_contain_text("harmless values: none → clerk")
    expect(verdict).to_contain_text('except "clerk"')
    for name in ("baker", "nurse", "pilot"):
        page.get_by_label(name, exact=True).check()
    expect(page.locator("#policy_note")).to_contain_text("there is nothing to protect")
    for name in ("baker", "nurse", "pilot"):
        page.get_by_label(name, exact=True).uncheck()
    page.fill("#protect", "age,10")
    page.locator("#protect").blur()
    expect(words).to_contain_text("protection: none → {'age': 10}")
    expect(verdict).to_contain_text("after coarsening age")
    reload(page)
    expect(page.get_by_label("clerk", exact=True)).to_be_checked()
    expect(page.locator("#protect")).to_have_value("age,10")
    page.click("#preset_again")
    expect(page.get_by_label("clerk", exact=True)).not_to_be_checked()
    expect(page.locator("#protect")).to_have_value("")
    expect(page.locator("#exposed_above_number")).to_have_value("0")
    expect(words).not_to_contain_text("Changed")
    current_verdict(page)


def test_a_verdict_in_the_making_is_never_shown_as_current(
    page, workspace, show, people, monkeypatch
):
    """Until the figures are there, the old verdict is greyed."""
    going_on, plain = threading.Event(), choose_policy.setting_of

    def slow(candidate):
        if candidate.policy.bound.name == "exact":
            assert going_on.wait(60)
        return plain(candidate)

    monkeypatch.setattr(choose_policy, "setting_of", slow)
    prepared(workspace, people / "people.parquet", ROLES)
    show()
    current_verdict(page)
    before = page.text_content(CURRENT)
    page.select_option("#bound", "exact")
    stale = page.locator("#verdict .result.stale")
    expect(stale).to_contain_text("Recomputing…")
    expect(stale).to_have_attribute("aria-busy", "true")
    going_on.set()
    current_verdict(page)
    assert page.text_content(CURRENT) != before
    # The page greys it before the server knows of a change; back where it was, it holds again.
    turned = """(values) => {
      const slider = document.getElementById("margins_range");
      return values.map((value) => {
        slider.value = value;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        return document.querySelectorAll("#verdict .result:not(.stale)").length;
      });
    }"""
    now = page.input_value("#margins_number")
    assert page.evaluate(turned, [2, now]) == [0, 0]
    current_verdict(page)
    expect(page.locator(CURRENT)).to_have_css("opacity", "1")
    expect(page.locator("#details .result:not(.stale)")).to_be_visible()


SECRET = bytes((37 * i + 5) % 256 for i in range(32))


def test_a_key_of_ones_own_and_what_its_ledger_refuses(page, workspace, show, people, tmp_path):
    """Each reason has a box, and both may be needed; nothing of the key is left in a file."""
    prepared(workspace, people / "people.parquet", ROLES, step=4)
    show()
    key_note, done = page.locator("#key_note_place"), page.locator("#publishing")
    page.check("input[name=key_kind][value=own]")
    page.fill("#key_text", "abc")
    page.click("#publish")
    expect(key_note).to_contain_text("64 hexadecimal digits")
    page.fill("#key_text", "")
    (tmp_path / "my.key").write_text(SECRET.hex())
    page.set_input_files("#key_file", tmp_path / "my.key")
    expect(page.locator("#key_file_progress")).to_contain_text("Upload complete")
    page.click("#publish")
    expect(key_note).to_contain_text("came without its ledger")
    expect(page.locator("#publishing .notice.good")).to_have_count(0)
    page.get_by_label("This key was never used").check()
    publish(page)
    expect(page.locator("#key_unused")).to_have_count(0)
    expect(key_note.locator(".notice")).to_have_count(0)
    assert workspace.published.key.secret == SECRET
    assert not [f for f in workspace.home.glob("fileupload-*/**/*") if f.is_file()]
    expect(page.locator("#key_choice .radio:has(:checked)")).to_contain_text("Use this table’s key")
    assert download(page, "get_table_key", tmp_path).read_text() == SECRET.hex() + "\n"

    def other_roles(sensitive, public):
        page.click("#goto_2")
        choose_roles(page, sensitive, public)
        go_on(page, 2)
        current_verdict(page)
        go_on(page, 3)
        page.click("#publish")

    note, boxes = page.locator("#publish_note"), page.locator("#consents")
    role_change = boxes.locator("input[name=role_change]")
    second_sample = boxes.locator("input[name=second_sample]")
    other_roles("sex", ("town", "job"))
    expect(note).to_contain_text("would make 'job' public and 'sex' sensitive")
    expect(second_sample).to_have_count(0)
    role_change.check()
    page.click("#publish")
    expect(done).to_contain_text("one tells what the other hides")
    other_roles("job", ("town",))
    expect(note).to_contain_text("'job' was public")
    expect(role_change).not_to_be_checked()
    role_change.check()
    page.click("#publish")
    expect(note).to_contain_text("a second, independent sample")
    expect(role_change).to_be_checked()
    second_sample.check()
    page.click("#publish")
    expect(done).to_contain_text("an adversary can average the two")
    expect(boxes.locator("input")).to_have_count(0)
    with zipfile.ZipFile(download(page, "get_table_ledger", tmp_path)) as archive:
        assert archive.read("reconpriv.key.ledger").count(b"\n") == 3


def test_an_old_release_says_so(page, workspace, show, people):
    prepared(workspace, people / "people.parquet", ROLES, step=4)
    show()
    expect(page.locator("#key_choice .radio").first).to_contain_text("Generate a new key")
    publish(page)
    expect(page.locator(".key-notice")).to_contain_text("until it closes")
    page.click("#back_4")
    set_dial(page, "retention", "0.4")
    current_verdict(page)
    page.click("#goto_5")
    on_step(page, 5)
    expect(page.locator("#stale")).to_contain_text("p: 0.5 → 0.4")
    expect(page.locator("#release_mark")).to_contain_text("older than your settings")
    page.click("#republish")
    on_step(page, 4)
    expect(page.locator("#publishing")).to_contain_text("independent second sample")
    page.click("#goto_3")
    set_dial(page, "retention", "0.5")
    set_dial(page, "doubt", "0.2")
    current_verdict(page)
    go_on(page, 3)
    expect(page.locator("#publishing")).to_contain_text("gives no second sample away")
    publish(page)
    expect(page.locator("#publishing")).not_to_contain_text("Changed since")
    go_on(page, 4)
    expect(page.locator("#stale .notice")).to_have_count(0)
    expect(page.locator("#release_mark .tag")).to_have_count(0)


def test_on_a_phone_a_release_does_not_push_its_success_out_of_sight(page, workspace, show, people):
    prepared(workspace, people / "people.parquet", ROLES, step=4)
    page.set_viewport_size({"width": 390, "height": 844})
    show()
    publish(page, "test")
    expect(page.locator("#publishing .notice.good")).to_be_in_viewport(ratio=1)
    expect(page.locator("#publish_note .notice.good")).to_be_in_viewport(ratio=1)


def test_cancel_stops_a_publication(page, workspace, show, people, monkeypatch):
    def publishing(self, *_, **__):
        assert self.cancel.wait(60)
        raise CancelledError

    monkeypatch.setattr(Workspace, "publish", publishing)
    prepared(workspace, people / "people.parquet", ROLES, step=4)
    show()
    page.click("#publish")
    page.click("#cancel")
    expect(page.locator("#publish_note .notice")).to_contain_text("Cancelled")
    expect(page.locator("#publish")).to_be_visible()
    expect(page.locator("#goto_5")).to_be_disabled()


def test_a_second_tab_says_what_another_one_changed(page, workspace, show, people):
    load(workspace, people / "people.parquet", ROLES)
    show()
    other = page.context.new_page()
    other.goto(page.url)
    connected(other)
    expect(other.locator(".elsewhere")).to_have_count(0)
    other.fill("#path", str(people / "people.csv"))
    other.press("#path", "Enter")
    bar = page.locator(".elsewhere")
    expect(bar).to_contain_text(f"Another tab opened {people / 'people.csv'}")
    expect(other.locator(".elsewhere")).to_have_count(0)
    other.close()
    bar.get_by_role("button").click()
    connected(page)
    expect(page.locator("#opened")).to_contain_text("people.csv")
    expect(page.locator(".elsewhere")).to_have_count(0)


def faults(page, *rules):
    """What axe-core calls serious or critical, with where it is."""
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{fault['id']}: {node['target']} {node['failureSummary']}"
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


def check(page):
    """All rules in light, those that a theme can break in dark, then the width of a phone."""
    page.emulate_media(color_scheme="light")
    assert faults(page) == []
    page.emulate_media(color_scheme="dark")
    assert faults(page, "color-contrast", "link-in-text-block") == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 900})


def visit(page):
    """Every step, filled, and the places where explanations stand."""
    page.wait_for_selector("select.role")
    page.click("#next_2")
    expect(page.locator("#roles_note .notice")).to_be_visible()
    yield "roles, with an explanation"
    page.click("#goto_1")
    expect(page.locator("#opened .card")).to_be_visible()
    yield "table"
    go_on(page, 1)
    choose_roles(page, "job", ROLES.public)
    go_on(page, 2)
    for part in (
        "#details table",
        "#picture svg:visible",
        "#advice p:visible",
        "#columns_part table",
    ):
        page.wait_for_selector(part)
    yield "policy"
    go_on(page, 3)
    page.check("input[name=key_kind][value=own]")
    yield "publish, with a key of one's own"
    publish(page, "test")
    yield "published"
    go_on(page, 4)
    expect(page.locator("#recipes pre").first).to_be_visible()
    yield "download"
    go_on(page, 5)
    page.select_option("#ask_by", "town")
    page.click("#ask")
    expect(page.locator("#answers table")).to_be_visible()
    yield "ask"


def test_every_step_is_accessible_in_both_themes_and_fits_a_phone(browser, workspace, people):

    workspace.look(str(people / "people.parquet"))
    workspace.step = 2
    workspace.draft |= {"preset": "paper", **controls_of(preset("paper"))}
    # The page's own policy allows no foreign script, and axe is one.
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, bypass_csp=True, reduced_motion="reduce"
    )
    context.add_init_script(AXE)
    page = context.new_page()
    with served(workspace) as address:
        enter(page, address)
        for _ in visit(page):
            check(page)
        context.close()
