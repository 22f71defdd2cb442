"""Run every command, as text and as JSON, on the bundled Adult table; say what differs from before.

    python tools/compare_commands.py save before.json   # in the tree as it is
    python tools/compare_commands.py check before.json  # in the tree as it shall be

White space does not count, nor does the tenth digit of a number. Everything runs in one process, in
a temporary folder, with a fixed key.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import signal
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from reconpriv.cli.app import app

TABLE = "example:adult -s occupation --public age,sex,race --missing value"
SMALL = "example:adult -s occupation --public sex,race --missing value"
QUERY = "SELECT sex, count(*) FROM release WHERE occupation = 'Sales' GROUP BY sex"
BOTH = [  # run with and without --json
    f"audit {TABLE}",
    f"audit {TABLE} --no-columns --preset paper",
    f"audit {SMALL} --worst 2 --k 7 --exposed-above 0 -p 0.05",
    f"audit {TABLE} --protect age=10",
    f"publish {TABLE} r1 --test-key",
    f"publish {SMALL} r2 --test-key --preset paper --format csv",
    f"publish {TABLE} r3 --test-key --protect age=10",
    f"publish {SMALL} x.duckdb --test-key --to-table t --to t.duckdb",
    "info r1", "info r2", "info r3",
    f'query r1 "{QUERY}"',
    "query r1 \"SELECT count(*) FROM release WHERE occupation = 'Sales' AND age < 30\"",
    "query r1 \"SELECT count(*) FROM release WHERE sex = 'Male'\"",
    "query r1 \"SELECT share(occupation = 'Sales'), avg(age) FROM release GROUP BY sex\"",
    "query r1 \"SELECT avg(age) FROM release WHERE occupation = 'Sales'\"",
    "query r3 \"SELECT count(*) FROM release WHERE occupation = 'Sales' AND age = 23\"",
    "query r2 --batch batch.csv",
    f'query r2 "{QUERY}" --confidence 0.9 --simultaneous --chart c.json --overwrite',
    f'query r2 "{QUERY}" --estimator mle',
    "crosstab r1 occupation sex",
    "crosstab r1 occupation sex --shares column --totals --widest 5%",
    "crosstab r2 sex,race occupation --where \"sex = 'Male'\" --totals",
    "chi-square r1 sex", "chi-square r2 sex,race --where \"race = 'White'\"",
    "learn r1 --target sex", "learn r2 --test test.csv",
    "logistic r1 --target Sales --features age,sex",
    "logistic r2 --target occupation --features sex --where \"race = 'Black'\""
    " --merge 'few=Sales,Armed-Forces'",
    "linear r1 --outcome age --features sex,occupation --reference sex=Male",
    f"tune {SMALL} --max-error 0.1 --queries 300 -p 0.3,0.5 -e 0.5 -d 0.05,0.1",
    f"tune {SMALL} --queries 300 -p 0.3:0.5:0.1 -e 0.5 -d 0.05 -o settings.csv --overwrite",
    f"attack micro {SMALL}", f"attack differencing {SMALL} --sampling paper --margins 0",
    "attack micro r1", f"attack granularity {SMALL}",
    f"workload {SMALL} --queries 200 --release r2 -o w.csv --overwrite",
    "columns example:adult -s occupation", "columns example:adult",
    "retention --rho1 0.1 --rho2 0.5 -m 10", "doctor", "demo",
    "ledger show my.key", "ledger verify my.key", "ledger repair my.key",
    "export r1 out.csv --overwrite", "report r1 -o report.html --overwrite",
    f"publish {SMALL} r4 --key my.key --report internal.html --overwrite",
    f"audit {SMALL} --report audit.html --groups groups.csv --exact-tails --worst 1",
]  # fmt: skip
ONCE = [
    "--version", "--help", "keygen my.key", "keygen my.key", "audit", "audit nowhere.csv -s a",
    "audit example:adult -s occupation", f"audit {TABLE} --exact-tails",
    f"audit {TABLE} -p 2", f"audit {TABLE} --sampling octav", f"audit {TABLE} -p 0.5 -p 0.6",
    f"audit {TABLE} --columns --no-columns", f"audit {TABLE} --margins 1 --margins-rho 1",
    f"publish {TABLE}", f"publish {TABLE} r1 --test-key", f"publish {TABLE} r9 --key '' --test-key",
    "query r1", "query r1 'SELECT'", f'query r1 "{QUERY}" -o x.csv', "query r1 --batch nothing.csv",
    "query nowhere 'SELECT count(*) FROM release'", f'query r1 "{QUERY}" --score Sales=x',
    "crosstab r1 ''", "crosstab r1 nothing", "crosstab r1 sex --shares rows",
    "chi-square r1 occupation", "learn r1 --features ''", "linear r1 --outcome sex --features age",
    "logistic r1 --target Nothing --features age", "report r1 -o report.html", "export r1 out.pdf",
    f"tune {TABLE} --current q=1", f"tune {TABLE} -p a", f"tune {TABLE} --overwrite",
    f"attack nothing {TABLE}", f"attack micro {TABLE} --keys 3", "attack micro r1 --public age",
    "ledger burn my.key", "ledger withdraw my.key", "ledger withdraw my.key 1 --why 'not sent'",
    f"workload {TABLE} --overwrite", "experiment nothing", "studio -", "adit x",
    "audit x --nothing",
    "retention --rho1 0.5 --rho2 0.1 -m 10",
]  # fmt: skip


def run_all() -> dict[str, dict[str, object]]:
    """The output of every command."""
    runner = CliRunner()
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("batch.csv").write_text("sex,occupation\nMale,Sales\nFemale,Sales\n,Sales\n")
        Path("test.csv").write_text(
            "sex,race,occupation\nMale,White,Sales\nFemale,Black,Other-service\n"
        )
        lines = [*ONCE[:4]]
        for line in BOTH:
            lines += [line, f"{line} --json"]
        lines += ONCE[4:]
        handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        for line in lines:
            words = shlex.split(line)
            if line.startswith("publish") and "--json" in words:
                words = [w + "j" if re.fullmatch(r"r\d|t", w) else w for w in words]
            if not line.startswith("--"):
                print(line, file=sys.stderr)
            done = runner.invoke(app, words)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            text = f"{done.stdout}\n-- stderr --\n{done.stderr}".replace(folder, "FOLDER")
            text = re.sub(r"\d\d\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "DATE", text)
            key = line if line not in found else f"{line} (again)"
            found[key] = {"exit": done.exit_code, "words": [rounded(word) for word in text.split()]}
    return found


def rounded(word: str) -> str:
    """A word of an output without the last digits of its number, and without places that vary."""
    try:
        return f"{float(word.strip(',')):.9g}"
    except ValueError:
        return re.sub(r"reconpriv-demo-\w+", "DEMO", word)


def main() -> int:
    """Save the outputs, or compare them with those of before."""
    action, path = sys.argv[1], Path(sys.argv[2]).resolve()
    found = run_all()
    if action == "save":
        path.write_text(json.dumps(found, ensure_ascii=False))
        return 0
    before = json.loads(path.read_text())
    differ = 0
    for name, one in before.items():
        one["words"] = [rounded(word) for word in one["words"]]
        new = found.get(name)
        if new == one:
            continue
        differ += 1
        print(f"\n=== {name}: {one['exit']} -> {new and new['exit']}")
        if new:
            matcher = difflib.SequenceMatcher(None, one["words"], new["words"], autojunk=False)
            for kind, a, b, c, d in matcher.get_opcodes():
                if kind != "equal":
                    print("  -", " ".join(one["words"][max(a - 3, 0) : b + 3]))
                    print("  +", " ".join(new["words"][max(c - 3, 0) : d + 3]))
    print(f"{differ} of {len(before)} outputs differ")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
