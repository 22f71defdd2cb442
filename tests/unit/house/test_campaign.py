"""The campaign runs: a few cases of every generator, judged; and its judge can say no."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from campaign.case import Case, Outcome, Step  # noqa: E402
from campaign.judge import ANSWER, HANG, LEFT, MESSAGE, SECRET, STATUS, judged  # noqa: E402
from campaign.place import KEY, RAW, VAULT, Place  # noqa: E402
from campaign.registry import GENERATORS, plan  # noqa: E402
from campaign.summary import BEGIN, END, PAGE  # noqa: E402


def test_one_case_of_every_generator_passes():
    ended = subprocess.run(
        [sys.executable, "-m", "campaign", "--cases", "1", "--jobs", "1"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{len(GENERATORS)} cases" in ended.stdout


def test_a_plan_gives_each_generator_its_share():
    cases = plan(1_000)
    assert abs(len(cases) - 1_000) < 20
    assert {one.name for one, _ in cases[:100]} == set(GENERATORS)


@pytest.mark.parametrize(
    ("outcome", "rule"),
    [
        ({"code": 70}, STATUS),
        ({"code": -11}, STATUS),
        ({"code": None}, HANG),
        ({"code": 2, "err": b"error: a\nb\n"}, MESSAGE),
        ({"code": 2, "err": b"error: " + b"a" * 2_000 + b"\n"}, MESSAGE),
        ({"code": 2, "err": b"error: \x1b[31m.\n"}, MESSAGE),
        ({"code": 2, "err": b"error: A.\n", "out": b"x"}, MESSAGE),
        ({"code": 0, "err": b"Exception ignored in"}, MESSAGE),
        ({"code": 2, "err": b"error: A.\n", "after": {"scratch/x": "-"}}, LEFT),
        ({"code": 0, "after": {"desk/.out.old": "-"}}, LEFT),
        ({"code": 0, "out": RAW.encode()}, SECRET),
        ({"code": 0, "out": f"{KEY[:40]} │\n│ {KEY[40:]}".encode()}, SECRET),
        ({"code": 2, "err": f"error: /{VAULT}/t.csv.\n".encode()}, SECRET),
    ],
)
def test_the_judge_can_say_no(tmp_path, outcome, rule):
    given = {"code": 0, "out": b"", "err": b"", "seconds": 1.0, "before": {}, "after": {}}
    case = Case("x", (Step(("publish",), writes=("out",)),))
    faults = judged(case, Place(tmp_path, tmp_path), [Outcome(**{**given, **outcome})])
    assert rule in {fault.rule for fault in faults}
    fine = Outcome(**{**given, "after": {"desk/out": "-", "desk/out/data.parquet": "-"}})
    assert judged(case, Place(tmp_path, tmp_path), [fine]) == []
    assert ANSWER not in {fault.rule for fault in faults}


def test_the_page_holds_the_table():
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(BEGIN)[1].split(END)[0]
    for name in GENERATORS:
        assert f"| {name} |" in table
