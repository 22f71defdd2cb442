"""The command line: help, JSON, plain text, quick imports, retention and keygen."""

import json
import math
import os
import re
import stat
import subprocess
import sys
from shlex import split

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.cli.app import app
from reconpriv.cli.process.start import with_asked_command

COMMANDS = sorted(
    command.name or command.callback.__name__
    for command in app.registered_commands
    if command.callback is not None
)


@pytest.fixture
def good(small, tmp_path):
    pq.write_table(small, tmp_path / "good.parquet")
    return tmp_path / "good.parquet"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example(command, cli):
    outcome = cli(command, "--help")
    assert outcome.code == 0
    assert f"reconpriv {command}" in outcome.out.split("Example", 1)[1]
    assert ("--json" in outcome.out) == (command != "studio")
    assert cli(command, "-h").out == outcome.out


def test_help_lists_every_command(cli):
    text = cli("--help").out
    assert [command for command in COMMANDS if command not in text] == []


def test_no_command_shows_the_help(cli):
    outcome = cli()
    assert "Usage" in outcome.out + outcome.err
    assert "publish" in outcome.out + outcome.err


def test_version(cli, process):
    assert cli("--version").out == f"reconpriv {rp.__version__}\n"
    assert process("--version").out == f"reconpriv {rp.__version__}\n"


def test_the_console_script_is_installed():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="reconpriv")
    assert script.value == "reconpriv.__main__:main"


def test_json_of_audit_and_publish(cli, good, tmp_path):
    audit = cli("audit", good, "-s", "Education", "--public=all", "--json")
    report = json.loads(audit.out)
    assert (audit.code, report["records"], report["private"]) == (1, 4_000, False)
    out = tmp_path / "out"
    done = cli("publish", good, out, "-s", "Education", "--public=all", "--test-key", "--json")
    summary = json.loads(done.out)
    assert (done.code, summary["records"], summary["release"]) == (0, 4_000, str(out))
    assert 0 < summary["trials"] < 4_000


def test_json_keeps_text_readable(cli, tmp_path):
    rows = [{"Straße": s, "s": v} for s in ("naïve", "数据") for v in "xy" * 10]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    outcome = cli("audit", tmp_path / "t.parquet", "-s", "s", "--public=all", "--json")
    assert "数据" in outcome.out
    assert "Straße" in outcome.out


def test_json_stands_alone_on_standard_output(process, tmp_path):
    """Warnings go to standard error, so a pipe into jq never breaks."""
    rows = [{"id": i, "s": "xy"[i % 2]} for i in range(100)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    outcome = process("audit", tmp_path / "t.parquet", "-s", "s", "--public=all", "--json")
    assert json.loads(outcome.out)["records"] == 100
    assert outcome.err.startswith("warning: ")
    assert json.loads(outcome.out)["warnings"][0] in outcome.err


@pytest.mark.parametrize("command", ["audit", "publish"])
def test_text_is_plain_when_piped(command, process, good, tmp_path):
    out = [tmp_path / "out", "--test-key"] if command == "publish" else []
    outcome = process(command, good, *out, "-s", "Education", "--public=all")
    assert "\x1b" not in outcome.out + outcome.err
    assert "4,000" in outcome.out
    assert not any(line != line.rstrip() for line in outcome.out.splitlines())


def test_audit_text_says_the_verdict_first(cli, good):
    lines = cli("audit", good, "-s", "Education", "--public=all").out.splitlines()
    assert lines[0].startswith("Not private:")
    assert any("exact tail" in line for line in lines)


def test_publish_with_a_key_says_nothing_of_it(cli, good, tmp_path):
    cli("keygen", tmp_path / "key")
    outcome = cli(
        "publish",
        good,
        tmp_path / "out",
        *split("-s Education --public=all --key"),
        tmp_path / "key",
    )
    assert outcome.code == 0
    assert "key" not in outcome.err and "sample" not in outcome.err


@pytest.mark.parametrize("worst", [0, 1, 3])
def test_worst_is_as_long_as_asked_for(worst, cli, good):
    outcome = cli("audit", good, "-s", "Education", "--public=all", "--worst", worst, "--json")
    assert outcome.code == 1, outcome.err
    assert len(json.loads(outcome.out)["worst"]) == worst


def test_a_wide_table_is_compared_by_column_only_if_asked(cli, tmp_path):
    names = [f"c{i}" for i in range(25)]
    rows = "".join(",".join(str(i % 2) for _ in names) + f",v{i % 3}\n" for i in range(60))
    (tmp_path / "wide.csv").write_text(",".join([*names, "s"]) + "\n" + rows)
    done = cli("audit", tmp_path / "wide.csv", "-s", "s", "--public=all")
    assert "25 public columns" in " ".join(done.out.split()) and "--columns" in done.out


def test_demo_audits_publishes_answers_and_says_what_to_try_next(process, cli, tmp_path):
    outcome = process("demo", cwd=tmp_path)
    assert (outcome.code, outcome.err, list(tmp_path.iterdir())) == (0, "", [])
    assert "48,842" in outcome.out and re.search(r"reconpriv (audit|publish)", outcome.out)
    kept = cli("demo", "--out", tmp_path / "kept", "--json")
    assert json.loads(kept.out)["audit"]["records"] == 48_842
    assert (tmp_path / "kept" / "datapackage.json").exists()


# --- retention and keygen ---------------------------------------------------------------------


def test_retention_finds_the_largest_p_and_its_level(cli):
    words = ("retention", "--rho1", 0.1, "--rho2", 0.5, "-m", 10)
    assert "0.444444" in cli(*words).out and "2.19722" in cli(*words).out
    found = json.loads(cli(*words, "--json").out)
    assert found["retention"] == pytest.approx(4 / 9, rel=1e-12)
    assert found["local_dp_epsilon"] == pytest.approx(math.log(9))


def test_keygen_writes_256_bits_for_the_owner_alone(cli, tmp_path):
    old = os.umask(0)
    try:
        outcomes = [cli("keygen", tmp_path / "one"), cli("keygen", tmp_path / "two", "--json")]
    finally:
        os.umask(old)
    texts = []
    for name, outcome in zip(("one", "two"), outcomes, strict=True):
        assert outcome.code == 0 and str(tmp_path / name) in outcome.out
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        texts.append((tmp_path / name).read_text())
        assert re.fullmatch(r"[0-9a-f]{64}\n", texts[-1])
        assert texts[-1].strip() not in outcome.out + outcome.err
        assert rp.Key.from_file(tmp_path / name).secret.hex() == texts[-1].strip()
    assert texts[0] != texts[1]


def test_overwrite_also_replaces_the_report(cli, good, tmp_path):
    command = (
        "publish", good, tmp_path / "out", "-s", "Education", "--public=all", "--test-key",
        "--report", tmp_path / "r.html",
    )  # fmt: skip
    assert cli(*command).code == 0
    (tmp_path / "r.html").write_text("old")
    assert cli(*command, "--overwrite").code == 0
    assert (tmp_path / "r.html").read_text() != "old"


def loaded_after(code):
    """The top-level packages that a fresh interpreter has loaded after running code."""
    program = code + "\nimport sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


HEAVY = {"duckdb", "pyarrow", "scipy", "numpy", "pandas", "polars", "rich", "typer", "cryptography"}


def test_import_loads_nothing_heavy():
    assert loaded_after("import reconpriv") & HEAVY == set()


def test_public_names_are_found_and_listed():
    names = {
        "AuditReport", "Key", "Policy", "Release", "Table", "dataset_path", "perturb", "read",
        "reconstruct",
    }  # fmt: skip
    assert names <= set(dir(rp))
    assert all(getattr(rp, name) is not None for name in rp.__all__)
    with pytest.raises(AttributeError, match="nope"):
        _ = rp.nope


def command(*args):
    """Code that runs a command and goes on."""
    return (
        "import sys, contextlib, io\n"
        f"sys.argv = ['reconpriv', *{list(map(str, args))!r}]\n"
        "from reconpriv.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()\n"
    )


@pytest.mark.parametrize(
    "args", [["--version"], ["--help"], ["retention", "--rho1=.1", "--rho2=.5", "-m=10"]]
)
def test_small_commands_load_no_engine(args):
    assert loaded_after(command(*args)) & {"duckdb", "pyarrow", "pandas"} == set()


# Each takes milliseconds, scipy a tenth of a second. An audit asks no questions of a release; the
# paper's policy has no exact tails.
UNUSED = {
    "pyarrow.dataset", "numpy.ma", "reconpriv.answers.answerer", "reconpriv.ask.sql.parse",
    "reconpriv.release.manifest", "reconpriv.ledger.account", "reconpriv.engines.writer",
    "reconpriv.tuning.report", "reconpriv.reports", "reconpriv.extras",
}  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "unused"),
    [
        ("recommended", UNUSED - {"numpy.ma", "reconpriv.tuning.report"}),
        ("paper", {*UNUSED, "scipy"}),
    ],
)
def test_an_audit_loads_no_more_than_it_needs(preset, unused):
    table = ("example:adult", "-s", "occupation", "--public", "sex,race", "--missing", "value")
    code = command("audit", *table, "--preset", preset)
    code += f"found = {unused!r} & sys.modules.keys(); assert not found, found\n"
    loaded = loaded_after(code)
    assert {"duckdb", "pyarrow", "numpy", "rich"} <= loaded
    assert loaded & {"pandas", "polars", "altair", "sqlglot", "shiny", "sklearn"} == set()
    # PyArrow would load pandas by itself, which is why commands hide it.
    assert "pandas" in loaded_after("import pyarrow; pyarrow.array([1])")


@pytest.mark.parametrize(
    ("words", "built"),
    [(["audit", "t.csv"], ["audit"]), ([], None), (["--help"], None), (["audt"], None)],
)
def test_only_the_command_asked_for_is_built(words, built):
    every = [*app.registered_commands]
    asked = with_asked_command(app, words).registered_commands
    assert built is None or [one.callback.__name__ for one in asked] == built
    assert built is not None or asked == every
    assert app.registered_commands == every


def test_pyspark_still_finds_pandas():
    code = (
        "import sys, types\n"
        "from reconpriv.cli.process.start import start_without_pandas\n"
        "start_without_pandas()\n"
        "try:\n    import pandas\nexcept ModuleNotFoundError as error:\n    refused = error.name\n"
        "sys.modules['pyspark'] = types.ModuleType('pyspark')\n"
        "import pandas; assert refused == pandas.__name__\n"
    )
    assert "pandas" in loaded_after(code)


def test_a_policy_loads_no_engine():
    code = "import reconpriv as rp; rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)"
    assert loaded_after(code) & {"duckdb", "pyarrow", "pandas"} == set()


def test_reading_and_publishing_need_neither_pandas_nor_polars(tmp_path):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pandas', 'polars'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import reconpriv as rp\n"
        "policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)\n"
        "t = rp.read(rp.dataset_path('adult'), sensitive='income', public=['sex', 'race'])\n"
        f"t.audit(policy); t.publish(policy, {str(tmp_path / 'out')!r}); t.close()"
    )
    loaded = loaded_after(code)
    assert "duckdb" in loaded
    assert "typer" not in loaded
    assert (tmp_path / "out" / "data.parquet").exists()
