"""The command line: help, JSON, plain text, quick imports, retention and keygen."""

import json
import math
import os
import re
import stat
import subprocess
import sys
import time
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


# --- help -------------------------------------------------------------------------------------


def test_the_commands_of_the_issue_are_there():
    assert {"audit", "publish", "retention", "keygen", "demo"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_every_command_has_an_example(command, flag, cli):
    outcome = cli(command, flag)
    assert outcome.code == 0
    assert "Example" in outcome.out
    assert f"reconpriv {command}" in outcome.out.split("Example", 1)[1]


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "studio"])
def test_every_command_that_prints_results_takes_json(command, cli):
    assert "--json" in cli(command, "--help").out


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


# --- JSON -------------------------------------------------------------------------------------


def test_audit_json(cli, good):
    outcome = cli("audit", good, "-s", "Education", "--public=all", "--json")
    report = json.loads(outcome.out)
    assert outcome.code == 1
    assert report.keys() >= {
        "records", "groups", "domain_size", "violating_groups", "violating_records", "private",
        "policy", "worst",
    }  # fmt: skip
    assert report["records"] == 4_000
    assert report["private"] is False


def test_publish_json(cli, good, tmp_path):
    outcome = cli(
        "publish", good, tmp_path / "out", "-s", "Education", "--public=all", "--test-key", "--json"
    )
    summary = json.loads(outcome.out)
    assert outcome.code == 0
    assert summary.keys() >= {
        "records", "groups", "sampled_groups", "trials", "unattainable_groups", "release",
    }  # fmt: skip
    assert summary["records"] == 4_000
    assert summary["release"] == str(tmp_path / "out")
    assert 0 < summary["trials"] < 4_000


def test_retention_json(cli):
    outcome = cli("retention", "--rho1", 0.1, "--rho2", 0.5, "-m", 10, "--json")
    result = json.loads(outcome.out)
    assert outcome.code == 0
    assert result["retention"] == pytest.approx(4 / 9, rel=1e-12)
    assert result["local_dp_epsilon"] == pytest.approx(math.log(1 + (4 / 9) * 10 / (5 / 9)))


def test_keygen_json(cli, tmp_path):
    outcome = cli("keygen", tmp_path / "key", "--json")
    assert json.loads(outcome.out)["key_file"] == str(tmp_path / "key")
    assert (tmp_path / "key").read_text().strip() not in outcome.out + outcome.err


def test_demo_json(cli):
    outcome = cli("demo", "--json")
    assert outcome.code == 0, outcome.err
    assert "48842" in json.dumps(json.loads(outcome.out))


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


# --- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "publish"])
def test_text_is_plain_when_piped(command, process, good, tmp_path):
    out = [tmp_path / "out", "--test-key"] if command == "publish" else []
    outcome = process(command, good, *out, "-s", "Education", "--public=all")
    assert "\x1b" not in outcome.out + outcome.err
    assert "4,000" in outcome.out
    assert not any(line != line.rstrip() for line in outcome.out.splitlines())


def test_errors_are_plain_when_piped(process):
    outcome = process("audit", "nope.csv", "-s", "x", "--public=all")
    assert "\x1b" not in outcome.err


def test_audit_text_says_the_verdict_first(cli, good):
    lines = cli("audit", good, "-s", "Education", "--public=all").out.splitlines()
    assert lines[0].startswith("Not private:")
    assert any("exact tail" in line for line in lines)


def test_publish_without_a_key_says_what_that_means(cli, good, tmp_path):
    outcome = cli("publish", good, tmp_path / "out", "-s", "Education", "--public=all")
    assert "independent sample" in outcome.err
    assert "keygen" in outcome.err


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


# --- demo -------------------------------------------------------------------------------------


def test_demo_audits_publishes_answers_and_says_what_to_try_next(process, tmp_path):
    begun = time.monotonic()
    outcome = process("demo", cwd=tmp_path)
    taken = time.monotonic() - begun
    assert outcome.code == 0, outcome.err
    assert "48,842" in outcome.out
    assert re.search(r"reconpriv (audit|publish)", outcome.out)
    assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []
    assert taken < 10


def test_demo_keeps_its_release_where_asked(cli, tmp_path):
    outcome = cli("demo", "--out", tmp_path / "kept")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "kept" / "datapackage.json").exists()


# --- retention --------------------------------------------------------------------------------


def test_retention_prints_the_largest_p_and_its_level(cli):
    outcome = cli("retention", "--rho1", 0.1, "--rho2", 0.5, "-m", 10)
    assert outcome.code == 0
    assert "0.444444" in outcome.out
    assert "2.19722" in outcome.out


@pytest.mark.parametrize(
    ("rho1", "rho2", "m"),
    [(0, 0.5, 10), (0.1, 1, 10), (0.5, 0.5, 10), (0.6, 0.5, 10), ("nan", 0.5, 10), (0.1, 0.5, 1),
     (0.1, 0.5, 0), (-0.1, 0.5, 10)],
)  # fmt: skip
def test_retention_refuses_what_makes_no_sense(rho1, rho2, m, cli):
    outcome = cli("retention", f"--rho1={rho1}", f"--rho2={rho2}", "-m", m)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1


# --- keygen -----------------------------------------------------------------------------------


def test_keygen_writes_256_bits_for_the_owner_alone(cli, tmp_path):
    old = os.umask(0)
    try:
        outcome = cli("keygen", tmp_path / "key")
    finally:
        os.umask(old)
    assert outcome.code == 0
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    text = (tmp_path / "key").read_text()
    assert re.fullmatch(r"[0-9a-f]{64}\n", text)
    assert text.strip() not in outcome.out + outcome.err
    assert rp.Key.from_file(tmp_path / "key").secret.hex() == text.strip()


def test_keygen_makes_a_new_key_each_time(cli, tmp_path):
    for name in ("one", "two"):
        cli("keygen", tmp_path / name)
    assert (tmp_path / "one").read_text() != (tmp_path / "two").read_text()


def test_overwrite_also_replaces_the_report(cli, good, tmp_path):
    command = (
        "publish", good, tmp_path / "out", "-s", "Education", "--public=all", "--test-key",
        "--report", tmp_path / "r.html",
    )  # fmt: skip
    assert cli(*command).code == 0
    (tmp_path / "r.html").write_text("old")
    assert cli(*command, "--overwrite").code == 0
    assert (tmp_path / "r.html").read_text() != "old"


def test_the_shell_completes_what_becomes_of_labels():
    code = "import sys; sys.argv[0] = 'reconpriv'; from reconpriv.cli import main; main()"
    words = {"_RECONPRIV_COMPLETE": "complete_bash", "COMP_WORDS": "reconpriv audit --labels a"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words, "COMP_CWORD": "3"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "apply" in done.stdout


def test_keygen_never_overwrites(cli, tmp_path):
    (tmp_path / "key").write_text("precious")
    outcome = cli("keygen", tmp_path / "key")
    assert outcome.code == 2
    assert "never overwritten" in outcome.err
    assert (tmp_path / "key").read_text() == "precious"


def test_keygen_follows_no_link(cli, tmp_path):
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    assert cli("keygen", tmp_path / "key").code == 2
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("place", ["no/such/folder/key", "."])
def test_keygen_says_where_it_cannot_write(place, cli, tmp_path):
    outcome = cli("keygen", tmp_path / place)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1


# --- imports ----------------------------------------------------------------------------------


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
# paper's policy has neither exact tails nor margins.
UNUSED = {
    "pyarrow.dataset", "numpy.ma", "reconpriv.answers.answerer", "reconpriv.ask.sql.parse",
    "reconpriv.release.manifest", "reconpriv.ledger.account", "reconpriv.engines.writer",
    "reconpriv.tuning.report", "reconpriv.reports", "reconpriv.extras",
}  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "unused"),
    [
        ("recommended", UNUSED - {"numpy.ma", "reconpriv.tuning.report"}),
        ("paper", {*UNUSED, "reconpriv.protect.margins.plan", "scipy"}),
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
    code = "import reconpriv as rp; rp.Policy(retention=0.5, epsilon=0.5, delta=0.3)"
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
        "policy = rp.Policy(0.5, 0.5, 0.3)\n"
        "t = rp.read(rp.dataset_path('adult'), sensitive='income', public=['sex', 'race'])\n"
        f"t.audit(policy); t.publish(policy, {str(tmp_path / 'out')!r}); t.close()"
    )
    loaded = loaded_after(code)
    assert "duckdb" in loaded
    assert "typer" not in loaded
    assert (tmp_path / "out" / "data.parquet").exists()
