"""A publish command that is printed gives back its policy, whatever the default policy is."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import reconpriv as rp
from reconpriv.cli.options.declared import taking
from reconpriv.cli.options.policy import PolicyOptions
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.messages.commands import policy_parts, publish_command
from reconpriv.policy.policy import UNATTAINABLE
from reconpriv.policy.presets import PRESETS
from reconpriv.theory.tails.bounds import BOUNDS
from shell import pasted

# Text that a shell, a list or an option parser might take for something else.
TEXTS = st.text(st.sampled_from("ab ,+\"'$\\-é"), min_size=1, max_size=4).filter(str.strip)
SHARES = st.floats(0.02, 0.98)
MARGINS = st.none() | st.builds(
    rp.Margins,
    st.sampled_from([0.1, 1.0, 2.5]),
    st.sampled_from([1e-9, 1e-6]),
    tables=st.none() | st.lists(TEXTS, min_size=1, max_size=2, unique=True),
) | st.builds(rp.Margins, rho=st.floats(0.001, 2.0))  # fmt: skip
POLICIES = st.builds(
    rp.Policy,
    retention=SHARES,
    tolerance=SHARES,
    doubt=SHARES,
    bound=st.sampled_from([*BOUNDS]),
    sampling=st.sampled_from(["octave", "public", "paper", "none"]),
    unattainable=st.sampled_from(UNATTAINABLE),
    margins=MARGINS,
    exposed_above=st.just(0.0) | st.floats(0.0, 0.99),
    harmless=st.lists(TEXTS.map(str.strip), max_size=3, unique=True).map(tuple),
)


@pytest.fixture(params=[*PRESETS])
def default(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each preset as what every command starts from."""
    monkeypatch.setattr("reconpriv.policy.presets.DEFAULT", PRESETS[request.param])
    yield request.param


@pytest.fixture(scope="module")
def schema() -> rp.Schema:
    """Two values and one public column, for which the recommended policy is changed."""
    table = pa.table({"sex": ["f", "m"] * 20, "ill": ["flu", "none", "none", "flu"] * 10})
    with rp.read(table, sensitive="ill", public="all") as opened:
        return opened.schema


def parsed(words: list[str], schema: rp.Schema) -> rp.Policy:
    """The policy of a command, for a table with this schema."""
    found: list[rp.Policy] = []
    app = typer.Typer()

    @app.command()
    @taking(left_out=ENGINE)
    def publish(table: TableOptions, out: str, policy: PolicyOptions) -> None:
        found.append(policy.on(policy.chosen(), schema).policy)

    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return found[0]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(policy=POLICIES)
def test_a_printed_command_gives_back_its_policy(
    default: str, schema: rp.Schema, policy: rp.Policy
) -> None:
    command = publish_command("t.csv", [("-s", "ill"), *policy_parts(policy)])
    assert parsed(pasted(command)[1:], schema) == policy
    assert eval(repr(policy.margins), {"Margins": rp.Margins}) == policy.margins


def test_so_does_that_of_every_preset(default: str, schema: rp.Schema) -> None:
    for one in PRESETS.values():
        command = publish_command("t.csv", [("-s", "ill"), *policy_parts(one.policy)])
        assert parsed(pasted(command)[1:], schema) == one.policy
