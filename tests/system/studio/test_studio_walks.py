"""Walks through the studio in a real browser: all the way, by mouse and by keyboard alone."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile

from playwright.sync_api import expect

import reconpriv as rp
from reconpriv.policy.presets import preset
from reconpriv.studio.pieces.policy_controls import controls_of
from reconpriv.studio.work.plan import DeclaredRoles
from stopping import wait_for
from studio_walk import (
    choose_roles,
    current_verdict,
    download,
    go_on,
    on_step,
    publish,
    reload,
    role_of,
    set_dial,
    upload,
)
from studio_workspace import prepared

# The recommended policy takes longer to judge.
PAPER = {"preset": "paper", **controls_of(preset("paper"))}


def test_the_whole_way(page, workspace, show, people, tmp_path, files_of):
    """Upload, roles, sliders, publish, download, ask; script and command give the same bytes."""
    workspace.draft |= PAPER
    show()
    open_a_table(page, workspace, people, tmp_path)
    choose_the_roles(page)
    choose_a_policy(page)
    expect(page.locator("#plan_facts")).to_contain_text("p = 0.4, tolerance 0.5, doubt 0.04")
    expect(page.locator("#plan_facts")).to_contain_text(
        "age by 0, 30, 60, top:70, town in 2 groups"
    )
    publish(page)
    expect(page.locator("#publishing")).to_contain_text("Margins: ε = 1, δ = 1e-9")
    go_on(page, 4)
    for id in ("release", "key", "script", "command", "analyst_report", "internal_report"):
        download(page, f"get_{id}", tmp_path)
    go_on(page, 5)
    truth = ask(page)
    ask_more(page, workspace, tmp_path)
    with rp.read(people / "people.csv", sensitive="job", public=["sex"], missing="value") as table:
        assert truth == f"{table.count(sex='F', job='nurse'):,}"
    check_downloads(tmp_path, people / "people.csv", files_of)


def open_a_table(page, workspace, people, folder):
    """A ragged file is explained where it was uploaded; an upload is private."""
    (folder / "ragged.csv").write_text("age,job\n30,cook\n31,cook,extra\n")
    page.click("#next_1")
    note = page.locator("#open_note .notice")
    expect(note).to_contain_text("Choose a table first")
    page.set_input_files("#upload", folder / "ragged.csv")
    expect(note).to_contain_text("Line 3 of the CSV has 3 fields")
    upload(page, people / "people.csv")
    expect(note).to_have_count(0)
    (stored,) = workspace.home.glob("upload-*/people.csv")
    modes = {stat.S_IMODE(one.stat().st_mode) for one in (workspace.home, stored.parent)}
    assert modes == {0o700}
    go_on(page, 1)


def choose_the_roles(page):
    """What is wrong with them is explained, and nothing that was entered is lost."""
    note = page.locator("#roles_note .notice")
    page.wait_for_selector("select.role")
    page.click("#next_2")
    expect(note).to_contain_text("exactly one column as sensitive")
    choose_roles(page, "job", ("sex", "age", "town"))
    bins = page.get_by_label("Bins of age")
    bins.fill("0, 30, 60, top:70")
    page.locator("tr", has=role_of(page, "town")).get_by_text("Groups", exact=True).click()
    towns = page.get_by_label("Groups of town")
    towns.fill("N")
    page.click("#next_2")
    expect(note).to_contain_text("Line 1 of the groups of 'town'")
    towns.fill("N,North\n*,others")
    page.click("#next_2")
    expect(note).to_contain_text("is missing in some records")
    expect(note).to_contain_text("with “Leave them out” in the roles step")
    expect(role_of(page, "job")).to_have_value("sensitive")
    expect(bins).to_have_value("0, 30, 60, top:70")
    page.select_option("#missing", "value")
    go_on(page, 2)


def choose_a_policy(page):
    """The verdict follows a slider; both outlive a look at another step and a new page."""
    current_verdict(page)
    expect(page.locator("#picture svg").first).to_be_visible(timeout=120_000)
    before = page.inner_text("#verdict")
    set_dial(page, "retention", "0.4")
    expect(page.locator("#verdict")).not_to_have_text(before)
    set_dial(page, "doubt", "0.04")
    set_dial(page, "margins", "1")
    expect(page.locator("#verdict .result:not(.stale)")).to_contain_text("Margins cost")
    page.click("#back_3")
    on_step(page, 2)
    expect(page.get_by_label("Bins of age")).to_have_value("0, 30, 60, top:70")
    go_on(page, 2)
    page.go_back()  # the browser's own way
    on_step(page, 2)
    page.go_forward()
    on_step(page, 3)
    reload(page)
    on_step(page, 3)
    expect(page.locator("#retention_number")).to_have_value("0.4")
    current_verdict(page)
    go_on(page, 3)


def ask(page):
    """A count; its truth. A condition that cuts a bin is refused, or answered for whole bins."""
    rows = page.locator("#answers tbody tr")
    for field in ("#ask_a", "#ask_among", "#ask_column", "#unbiased_estimator"):
        expect(page.locator(field)).to_be_hidden()
    expect(page.locator("#where_help")).to_contain_text("sex = ")
    page.select_option("#ask_value", label="nurse")
    page.fill("#where", "sex = 'F'")
    page.press("#where", "Enter")
    expect(rows).to_have_count(1)
    expect(page.locator("#answers .card th", has_text=re.compile("margins", re.I))).to_be_visible()
    truth = page.locator("#answers td[data-head=Truth]").inner_text()
    note = page.locator("#ask_note .notice")
    page.fill("#where", "age < 65")
    page.press("#where", "Enter")
    expect(note).to_contain_text("cuts the bin '60 to 70'")
    expect(note).to_contain_text("allow whole bins with “Answer for whole bins”.")
    page.check("#whole_bins")
    page.press("#where", "Enter")
    expect(rows).to_have_count(2)
    expect(note).to_have_count(0)
    return truth


def ask_more(page, workspace, folder):
    """A share, a comparison and an average, each with its chart; they outlive the page."""
    cards, note = page.locator("#answers .card"), page.locator("#ask_note .notice")
    page.fill("#where", "sex = 'F'")
    page.get_by_label("Share", exact=True).check()
    expect(page.locator("#ask_among")).to_be_visible()
    page.click("#ask")
    expect(cards).to_have_count(3)
    expect(cards.first).to_contain_text("Share of job = 'nurse' among sex = 'F'")
    page.get_by_label("Comparison", exact=True).check()
    expect(page.locator("#estimator")).to_be_hidden()
    page.fill("#where", "")
    page.click("#ask")
    expect(note).to_contain_text("A comparison needs two conditions")
    expect(cards).to_have_count(3)
    page.fill("#ask_a", "sex = 'F'")
    page.fill("#ask_b", "sex = 'M'")
    page.press("#ask_b", "Enter")
    expect(cards).to_have_count(4)
    expect(note).to_have_count(0)
    expect(cards.first).to_contain_text("The two shares")
    page.get_by_label("Average", exact=True).check()
    page.select_option("#ask_column", "job")
    expect(page.locator("#ask_score_0")).to_be_visible()
    page.select_option("#ask_column", "age")
    expect(page.locator("#ask_score_0")).to_be_hidden()
    page.select_option("#ask_by", "sex")
    page.click("#ask")
    expect(cards).to_have_count(5)
    expect(cards.first).to_contain_text("Average of age among job = 'nurse', by sex")
    expect(cards.locator("svg").first).to_be_visible()
    assert len(download(page, "get_answers_csv", folder).read_text().splitlines()) == 10
    before = page.locator("#answers").inner_text()
    page.fill("#where", "age < 30")  # not asked
    page.locator("#where").blur()
    wait_for(lambda: workspace.draft["question"]["where"] == "age < 30", 30, "the draft")
    reload(page)
    expect(page.locator("#where")).to_have_value("age < 30")
    expect(cards).to_have_count(5)
    assert page.locator("#answers").inner_text() == before
    expect(page.get_by_label("Average", exact=True)).to_be_checked()
    expect(page.locator("#ask_by")).to_have_value("sex")


def check_downloads(folder, table, files_of):
    """The release opens; script and command make its very bytes."""
    with zipfile.ZipFile(folder / "release.zip") as archive:
        archive.extractall(folder / "from-studio")
    made = files_of(folder / "from-studio" / "release")
    assert set(made) == {"data.parquet", "groups.parquet", "margins.parquet", "datapackage.json"}
    release = rp.open(folder / "from-studio" / "release")
    assert release.records == 2_000
    assert release.manifest["reconpriv"]["retention"] == 0.4
    assert "not for release" in (folder / "internal-report.html").read_text().lower()
    assert "job" in (folder / "release-report.html").read_text()
    key = (folder / "reconpriv.key").read_text().strip()
    for file in (*folder.glob("*.html"), *folder.glob("publish.*")):
        text = file.read_text()
        assert key not in text
        assert "reconpriv-studio-" not in text  # the folder on the publisher's machine
    shutil.copy(table, folder)
    (folder / "reconpriv.key").chmod(0o600)
    path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"
    env = {"PATH": path, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for command in ([sys.executable, "publish.py"], ["sh", "publish.sh"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=env)
        assert files_of(folder / "release") == made
        shutil.rmtree(folder / "release")


def tab_to(page, id):
    """Press Tab until the element has the focus."""
    for _ in range(120):
        if page.evaluate("document.activeElement && document.activeElement.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{id} cannot be reached with the keyboard")


def press(page, id, step=None):
    tab_to(page, id)
    page.keyboard.press("Enter")
    if step is not None:
        on_step(page, step)


LETTERS = {"sex": "Pu", "age": "L", "town": "Pu", "job": "S", "number": "L"}


def test_the_whole_way_with_the_keyboard_alone(page, workspace, show, people):
    workspace.draft |= PAPER
    show()
    tab_to(page, "path")
    page.keyboard.type(str(people / "people.parquet"))
    page.keyboard.press("Enter")
    expect(page.locator("#opened .card")).to_contain_text("people.parquet")
    press(page, "next_1", 2)
    page.wait_for_selector("select.role")
    assert page.evaluate("document.activeElement.id") == "title_2"
    for i, (column, letters) in enumerate(LETTERS.items()):
        tab_to(page, f"role_0_{i}")
        page.keyboard.type(letters)
        expected = {"Pu": "public", "S": "sensitive", "L": "drop"}[letters]
        expect(role_of(page, column)).to_have_value(expected)
    press(page, "next_2", 3)
    current_verdict(page)
    before = page.inner_text("#verdict")
    tab_to(page, "retention_range")
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#verdict")).not_to_have_text(before)
    expect(page.locator("#retention_number")).to_have_value("0.45")
    press(page, "next_3", 4)
    press(page, "publish")
    expect(page.locator("#publishing .notice.good")).to_be_visible()
    press(page, "next_4", 5)
    tab_to(page, "get_release")
    with page.expect_download() as got:
        page.keyboard.press("Enter")
    assert got.value.suggested_filename == "release.zip"
    press(page, "next_5", 6)
    press(page, "ask")
    expect(page.locator("#answers tbody tr")).to_have_count(1)
    expect(page.locator("#answers")).to_contain_text("exact")


# The time from a moved slider to a verdict that is about it: a greyed one is no answer.
LATENCY = """
async ([id, value]) => {
  const place = document.getElementById("verdict");
  const changed = new Promise((resolve) => {
    const watcher = new MutationObserver(() => {
      if (!place.querySelector(".result:not(.stale)")) return;
      watcher.disconnect();
      resolve();
    });
    watcher.observe(place, { childList: true, subtree: true, characterData: true });
  });
  const slider = document.getElementById(`${id}_range`);
  const begin = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  await changed;
  return performance.now() - begin;
}
"""
CENSUS = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")


def test_each_move_of_a_slider_is_answered_on_the_census_table(page, workspace, show):
    """The times are for whoever reads the output: a bar in seconds would fail on a busy machine."""
    public = tuple(name for name in CENSUS if name != "Education")
    prepared(workspace, "example:census_workers", DeclaredRoles("Education", public))
    show()
    page.wait_for_selector("#details table")
    current_verdict(page)
    times = [page.evaluate(LATENCY, ["retention", 0.3 + 0.03 * i]) for i in range(12)]
    print("slider answers, ms:", sorted(round(t) for t in times))
    assert page.input_value("#retention_range") == "0.63"
    current_verdict(page)
