"""What pages share: the workspace, results in the background, downloads, and words on errors."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from htmltools import tags
from shiny import reactive

import reconpriv as rp
from reconpriv.studio.pieces.parts import result
from reconpriv.studio.steps import download
from reconpriv.studio.work import workspace as workspace_module
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.live import Candidate, Live
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan
from reconpriv.studio.work.workspace import CancelledError, Workspace, explain, safe_name
from studio_workspace import POLICY, ROLES, load, write


def test_a_page_learns_what_another_one_changed(workspace):
    one, two = Live(workspace, None), Live(workspace, None)
    one.remember({"p": 0.5})  # the first values of a page are no change
    two.remember({"p": 0.5})
    assert one.changed_elsewhere() == two.changed_elsewhere() == ""
    one.remember({"p": 0.6})
    assert one.changed_elsewhere() == ""
    assert "settings" in two.changed_elsewhere()
    two.remember({"p": 0.7})  # a change of its own does not hide what it missed
    assert two.changed_elsewhere()
    assert one.changed_elsewhere()
    late = Live(workspace, None)
    assert late.changed_elsewhere() == ""
    workspace.look("example:adult")
    late.touch()
    assert "example:adult" in two.changed_elsewhere()


def test_a_failed_look_keeps_the_open_table(workspace, tmp_path):
    before = workspace.look("example:adult")
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    with pytest.raises(rp.ReconprivError):
        workspace.look(str(tmp_path / "bad.csv"))
    assert workspace.opened is before


def test_work_on_a_replaced_table_is_dropped(workspace):
    before = load(workspace, "example:adult", DeclaredRoles("income", ("sex",)))
    load(workspace, "example:adult", DeclaredRoles("income", ("race",)))
    for work in (lambda: workspace.audit(before, POLICY, worst=3), lambda: workspace.tuner(before)):
        with pytest.raises(CancelledError):
            work()


def test_a_cancelled_publication_leaves_nothing(workspace, tmp_path):
    loaded = load(workspace, write(tmp_path / "t.csv"))
    plan = PublicationPlan(loaded.opened.source, ROLES, POLICY, test_key=True)
    workspace.cancel.set()
    with pytest.raises(CancelledError):
        workspace.publish(loaded, plan, rp.Key.test(), generated=False)
    assert workspace.published is None and list(workspace.home.glob("made-*/*")) == []


def test_a_studio_ends_though_work_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace_module, "_GRACE", 0.05)
    going_on, made = threading.Event(), Workspace(tmp_path)
    assert made.close()
    made = Workspace(tmp_path)
    made.sweep_pool.submit(going_on.wait)
    assert not made.close()
    going_on.set()


def test_results_are_valid_for_their_own_key_alone(workspace, tmp_path):
    loaded = load(workspace, write(tmp_path / "t.csv"))
    one, other = Candidate(loaded, POLICY), Candidate(loaded, replace(POLICY, retention=0.51))
    assert one == Candidate(loaded, replace(POLICY))
    assert one != other and one != Candidate(replace(loaded), POLICY)
    interrupted = Candidate(loaded, replace(POLICY, retention=0.52))
    made = []

    def work(key):
        made.append(key)
        if key == interrupted:  # as by the engine when it is stopped
            raise KeyboardInterrupt
        if key == other:
            raise rp.ReconprivError("No.", hint="Try another.")
        return key.policy.retention

    async def run():
        with ThreadPoolExecutor(1) as pool, reactive.isolate():
            computation = Computation(pool, work)
            for wanted in (one, one, other, interrupted):
                computation.request(wanted)
                while computation.busy():
                    await asyncio.sleep(0.001)
                states.append((computation.result(one), computation.fault(other)))
            assert computation.latest() is None
            assert computation.result(None) is None

    states = []
    # A browser of other tests may keep a loop running in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(run())).result()
    assert states == [(0.5, ""), (0.5, ""), *[(None, "No. Try another.")] * 2]
    assert made == [one, other, interrupted]


def test_a_result_that_is_wanted_back_outlasts_what_runs_in_between():
    """A slider that moves there and back again ends with the result of where it is."""
    going_on = threading.Event()

    def work(key):
        assert key == "here" or going_on.wait(60)
        return key

    async def run():
        with ThreadPoolExecutor(1) as pool, reactive.isolate():
            computation = Computation(pool, work)
            for wanted in (["here"], ["there", "here"]):
                for key in wanted:
                    computation.request(key)
                if wanted != ["here"]:
                    going_on.set()
                while computation.busy():
                    await asyncio.sleep(0.001)
            return computation.result("here")

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: asyncio.run(run())).result() == "here"


def test_what_is_no_longer_wanted_stops_and_can_be_wanted_again():
    going_on, stopped = threading.Event(), []

    async def run():
        with ThreadPoolExecutor(1) as pool, reactive.isolate():

            def work(key):
                assert going_on.wait(60)
                try:
                    computation.step(1, 2)
                except CancelledError:
                    stopped.append(key)
                    raise
                return key

            computation = Computation(pool, work)
            for wanted in (True, False, True):
                going_on.clear()
                computation.request("here")
                computation.keep(lambda _, wanted=wanted: wanted)
                going_on.set()
                while computation.busy():
                    await asyncio.sleep(0.001)
                found.append(computation.result("here"))
                if wanted and len(found) == 1:
                    computation.request("there")
                    while computation.busy():
                        await asyncio.sleep(0.001)

    found = []
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(run())).result()
    assert (found, stopped) == (["here", None, "here"], ["here"])


def test_a_result_that_does_not_hold_is_greyed_and_busy():
    stale = str(result(tags.p("private"), current=False))
    assert 'aria-busy="true"' in stale
    assert "Recomputing…" in stale
    assert "aria-busy" not in str(result(tags.p("private"), current=True))


def test_a_bug_is_not_shown_as_a_trace():
    said = explain(ZeroDivisionError("secret"))
    assert "ZeroDivisionError" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("given", "kept"),
    [("../../etc/passwd", "passwd"), ("C:\\x\\data.csv", "data.csv"), (".hidden.csv", "hidden.csv"),
     ("a*b?.csv.gz", "a_b_.csv.gz"), ("", "table"), ("Tabelle ä.csv", "Tabelle ä.csv")],
)  # fmt: skip
def test_an_uploads_name_cannot_leave_its_folder(given, kept):
    assert safe_name(given) == kept


def test_a_release_that_is_not_to_be_handed_out_is_marked():
    marks = str(download.release_marks(test_key=True, older=False))
    assert "test key: not for release" in marks
    assert "older" not in marks
    assert str(download.release_marks(test_key=False, older=False)) == ""


def test_nothing_secret_is_among_what_analysts_get():
    html = str(download.panel({}))
    give, keep = html.index("Give to analysts"), html.index("Keep secret")
    assert 0 < give < keep
    mine = {"get_key", "ledger", "internal_report", "get_script", "get_command"}
    for name in {"get_release", "analyst_report"} | mine:
        at = html.index(f'id="{name}"')
        assert (at > keep) == (name in mine), name
