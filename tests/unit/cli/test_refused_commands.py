"""What commands refuse beyond the table and the policy: one sentence, exit code 2, nothing left.

Tables and policies are in test_bad_input.py. What separates the words of a refusal is ``|``.
"""

import json
import shlex

import pytest

import reconpriv as rp
from query_fixtures import JOBS, people_release
from refusals import check_sentence

A = "example:adult -s occupation --public age,sex,race --missing value"
T = "t.csv -s s --public=all"
QUERY = "release 'SELECT Sex, count(*) FROM release GROUP BY Sex'"
REGRESSION = "release --target nurse --features"
LONG = "x" * 300
SHARE = "did you mean"

REFUSED = {
    # attacks
    f"attack nonsense {T}": "no attack called",
    "attack micro t.csv": "needs its sensitive column",
    "attack repeat release": "needs the table itself",
    "attack granularity unsampled": "not sampled",
    "attack micro t.csv -s Nothing --public=all": "Nothing",
    f"attack ratio {T} --privacy 0": "λ",
    f"attack ratio {T} --privacy=inf": "between 1e-06 and 1e+06",
    f"attack ratio {T} --privacy=1e-320": "between 1e-06 and 1e+06",
    f"attack micro {T} --keys 0": "keys",
    f"attack repeat {T} --releases 1": "at least 4",
    f"attack micro {T} -e 0.01 -d 0.01": "nothing to attack",
    f"attack micro {T} --releases 3": "--releases works only with",
    "attack micro release -s s --public=all": "already",
    "attack micro release -p 0.4": "already",
    "attack micro release --protect age=10": "policy already",
    # numbers
    f"tune {T} --retention=5e-324": "leaves nothing to estimate",
    f"tune {A} --max-error 10": f"got 10: {SHARE} 0.1",
    f"tune {A} -p 0.5,10": f"got 10: {SHARE} 0.",
    f"tune {A} --margins 0 --margins 10.5": f"got 10.5: {SHARE} 0.",
    f"workload {A} --min-selectivity 5": f"got 5: {SHARE} 0.",
    "retention --rho1 10 --rho2 50 -m 10": f"got 10: {SHARE} 0.1?",
    f"retention --rho1=.1 --rho2=.5 -m 1{'0' * 400}": "at most",
    **{
        f"retention --rho1={rho1} --rho2={rho2} -m {m}": ""
        for rho1, rho2, m in (
            (0, 0.5, 10), (0.1, 1, 10), (0.5, 0.5, 10), (0.6, 0.5, 10), ("nan", 0.5, 10),
            (0.1, 0.5, 1), (0.1, 0.5, 0), (-0.1, 0.5, 10),
        )
    },
    "query release 'SELECT quantile(age, 1e) FROM release'": "cannot be estimated",
    f"logistic {REGRESSION} age --confidence=1e-17": "strictly between 0 and 1",
    # learning
    "learn release --features ,": "--features is empty",
    "learn release --target Sexes": "no column 'Sexes'",
    "learn release --alpha 0": "smoothing",
    "learn release --test nowhere.csv": "nowhere.csv",
    "chi-square release job": "the sensitive one",
    f"logistic {REGRESSION} ,": "--features is empty",
    f"logistic {REGRESSION} agee": "no column 'agee'",
    "logistic release --target Sex --features age": "public column",
    "linear release --outcome Sex --features age": "string values",
    "linear release --outcome age --features job --merge x": "--merge takes",
    # charts and tables
    f"query {QUERY} --chart a.pdf": "ending in .html, .svg, .png or .json",
    f"query {QUERY} --chart there.svg": "exists already",
    f"query {QUERY} --overwrite": "--overwrite needs -o or --chart",
    "query release --batch q.csv --chart a.svg": "--chart needs a query",
    "query release 'SELECT cout(*) FROM release' --chart a.svg": "error",
    "query release 'SELECT avg(job) FROM release' --score nurse=1 --score nurse=2":
        "--score is given twice for the value 'nurse'",
    f"logistic {REGRESSION} age --chart a": "has no ending",
    "crosstab release , Sex": "ROWS is empty",
    "crosstab release Sex jobb": "'jobb'",
    "crosstab release Sex Sex": "twice",
    "crosstab release Sex job --shares rows": "got 'rows'",
    "crosstab release Sex job --widest wide": "got 'wide'",
    "crosstab release Sex job --overwrite": "--overwrite needs --chart",
    # files
    "export release x.csv --margins --groups": "not both",
    "export release x.csv --margins": "The release has no margins.",
    f"workload {T} --estimator records": "--estimator needs --release",
    f"workload {T} --estimator best --release release": "best",
    f"audit {T} --report {LONG}.html": "too long",
    f"audit {T} --groups {LONG}.csv": "too long",
    f"export release {'é' * 200}.csv": "too long",
    f"workload {T} -o {'x' * 5_000}": "too long",
    f"report release -o {LONG}.html": "too long",
    "query damaged 'SELECT count(*) FROM release'": "damaged",
    "query release --batch nul.csv": "Line 3",
    "query release --batch /dev/zero -o answers.csv": "The batch file /dev/zero cannot be read",
    **{
        words: f"{named} is empty. Is a variable not set?"
        for named, words in (
            ("OUT", "publish t.csv '' -s s --public=all"),
            ("TABLE", "publish '' out -s s --public=all"),
            ("--key", "publish t.csv out -s s --public=all --key ''"),
            ("--report", "publish t.csv out -s s --public=all --report ''"),
            ("--domain", f"audit {T} --domain ''"),
            ("--batch", "query release --batch '' -o x.csv"),
            ("RELEASE", "info ''"), ("FILE", "keygen ''"),
        )
    },
    # keys
    f"publish {T[:5]} out {T[6:]} --key no.key": "no key file",
    f"publish {T[:5]} out {T[6:]} --key open.key": "chmod 600 open.key",
    f"publish {T[:5]} out {T[6:]} --key open.key --test-key": "either --key or --test-key",
    "keygen there.svg": "never overwritten",
    "keygen link": "", "keygen no/such/folder/key": "", "keygen .": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table, releases and files that must stay as they are."""
    folder = tmp_path_factory.mktemp("refused")
    rows = "".join(f"x{i % 4},{i % 5},v{i * i % 3}\n" for i in range(200))
    (folder / "t.csv").write_text("a,n,s\n" + rows)
    (folder / "there.svg").write_text("mine")
    (folder / "nul.csv").write_bytes(b"age,Sex\n20,F\n\0\0,F\n")
    rp.Key.generate().write(folder / "open.key")
    (folder / "open.key").chmod(0o644)
    (folder / "link").symlink_to(folder / "elsewhere")
    (folder / "release").symlink_to(people_release("octave").path)
    (folder / "unsampled").symlink_to(people_release("none").path)
    with rp.read(folder / "t.csv", sensitive="s", public="all") as table:
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            folder / "damaged",
            key=rp.Key.test(),
        )
    manifest = json.loads((folder / "damaged" / "datapackage.json").read_text())
    manifest["resources"][0]["path"] = "data\0.parquet"
    (folder / "damaged" / "datapackage.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize("words", REFUSED, ids=range(len(REFUSED)))
def test_it_is_refused_in_one_sentence(cli, place, monkeypatch, words):
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    done = cli(*shlex.split(words))
    assert (done.code, done.out) == (2, ""), done
    check_sentence(done.err)
    assert REFUSED[words] in done.err
    assert sorted(place.rglob("*")) == before
    assert (place / "there.svg").read_text() == "mine"


@pytest.mark.parametrize("score", [1e155, 1e308, float("inf"), float("nan")])
def test_scores_that_are_too_large(score):
    with pytest.raises(rp.ReconprivError, match="must lie between"):
        people_release("octave").average("job", scores=dict.fromkeys(JOBS, score))


def test_a_limit_of_many_digits_is_a_limit(cli):
    asked = f"SELECT Sex, count(*) FROM release GROUP BY Sex LIMIT {'9' * 5_000}"
    done = cli("query", people_release("octave").path, asked)
    assert done.code == 0 and done.out.count("exact") == 2


def test_a_usage_error_names_files_without_their_folders(cli, tmp_path):
    outcome = cli("audit", "t.csv", tmp_path / "vault" / "raw.csv", "-s", "s", "--public=all")
    assert outcome.code == 2 and "raw.csv" in outcome.err and "vault" not in outcome.err
