"""Two publications to one OUT, as two real processes: neither loses the other's release."""

import json
import signal

import pytest

from stopping import Command

TABLE = ("example:census_workers", "-s", "Education", "--public", "Gender,Race", "--test-key")


@pytest.mark.parametrize(("earlier", "overwrite"), [(False, False), (False, True), (True, True)])
def test_the_one_that_ends_last(tmp_path, scratch, process, earlier, overwrite):
    """The slow one has begun to write when the quick one publishes with another p."""
    desk = tmp_path / "desk"
    desk.mkdir()
    out, more = desk / "out", ["--overwrite"] if overwrite else []
    if earlier:
        assert process("publish", *TABLE, out, "-p", "0.2").code == 0
    slow = Command(
        "publish", *TABLE, out, *more, scratch=scratch, hold_at=desk / ".reconpriv-*/new/*"
    ).until_held()
    quick = process("publish", *TABLE, out, "-p", "0.3", *more)
    assert quick.code == 0, quick.err
    code, _, said = slow.stop(signal.SIGCONT)
    kept = json.loads(process("info", out, "--json").out)["retention"]
    if overwrite:
        assert (code, kept) == (0, 0.5), said
    else:
        assert (code, kept) == (2, 0.3)
        assert "exists already" in said
    assert [path.name for path in desk.iterdir()] == ["out"]
    assert list(scratch.iterdir()) == []
