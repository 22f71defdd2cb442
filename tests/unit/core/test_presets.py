"""Presets: policies with a name."""

import pytest

import reconpriv as rp
from query_fixtures import people
from reconpriv.policy import Policy
from reconpriv.presets import DEFAULT
from reconpriv.promise import not_promised, promise


@pytest.mark.parametrize("name", [*rp.PRESETS])
def test_every_preset_can_be_published(name, tmp_path, key):
    assert rp.PRESETS[name].sentence.endswith(".")
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(rp.preset(name), tmp_path / "r", key=key)
    assert release.promise == promise(rp.preset(name).as_dict())
    assert release.not_promised == not_promised(rp.preset(name).as_dict())


def test_the_default_is_that_of_the_command_line_and_of_the_paper(cli):
    assert DEFAULT.policy == Policy(0.5, 0.5, 0.3)
    assert f"[default: {DEFAULT.name}]" in " ".join(cli("audit", "--help").out.split())


def test_options_change_a_preset(cli):
    table = ["example:adult", "-s", "occupation", "--public", "sex", "--missing", "value"]
    found = cli("audit", *table, "--preset", "signed", "-d", "0.04", "--json", "--no-columns").out
    for part in ('"delta": 0.04', '"bound": "exact"', '"exposed_above": 0.25'):
        assert part in found
    plain = cli("audit", *table, "--preset", "signed", "--exposed-above", "0", "--json").out
    assert "exposed_above" not in plain
    wrong = cli("audit", *table, "--preset", "nice")
    assert (wrong.code, "no preset called 'nice'" in wrong.err) == (2, True)
