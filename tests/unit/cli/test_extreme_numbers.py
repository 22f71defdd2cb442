"""Numbers that no computation survives are refused in one sentence."""

import pytest

import reconpriv as rp
from refusals import check_sentence

ROLES = ("-s", "s", "--public", "a,n")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extreme")
    rows = "".join(f"x{i % 4},{i % 5},v{i * i % 3}\n" for i in range(200))
    (folder / "t.csv").write_text("a,n,s\n" + rows)
    with rp.read(folder / "t.csv", sensitive="s", public="all") as table:
        table.publish(rp.Policy(0.5, 0.5, 0.3), folder / "out", key=rp.Key(bytes(range(32))))
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audit", "t.csv", *ROLES, "-p", "1e-200"), "leaves nothing to estimate"),
        (("tune", "t.csv", *ROLES, "--retention=5e-324"), "leaves nothing to estimate"),
        (("attack", "ratio", "t.csv", *ROLES, "--privacy=inf"), "between 1e-06 and 1e+06"),
        (("attack", "ratio", "t.csv", *ROLES, "--privacy=1e-320"), "between 1e-06 and 1e+06"),
        (("audit", "t.csv", *ROLES, "--margins=1e20"), "at most 10; got 1e+20."),
        (("audit", "t.csv", *ROLES, "--margins-rho=1e20"), "at most 1,000,000"),
        (("retention", "--rho1=.1", "--rho2=.5", "-m", "1" + "0" * 400), "at most"),
        (("query", "out", "SELECT quantile(n, 1e) FROM release"), "cannot be estimated"),
        (("logistic", "out", "--target", "v0", "--features", "a", "--confidence=1e-17"),
         "strictly between 0 and 1"),
    ],
)  # fmt: skip
def test_refused(cli, place, monkeypatch, words, said):
    monkeypatch.chdir(place)
    done = cli(*words)
    assert done.code == 2, done
    check_sentence(done.err)
    assert said in done.err


def test_a_limit_of_many_digits_is_a_limit(cli, place):
    asked = f"SELECT a, count(*) FROM release GROUP BY a LIMIT {'9' * 5_000}"
    done = cli("query", place / "out", asked)
    assert done.code == 0 and done.out.count("exact") == 4


@pytest.mark.parametrize("score", [1e155, 1e308, float("inf"), float("nan")])
def test_scores(place, score):
    with pytest.raises(rp.ReconprivError, match="must lie between"):
        rp.open(place / "out").average("s", scores={"v0": score, "v1": 1})


def test_a_wide_table_is_compared_by_column_only_if_asked(cli, tmp_path):
    names = [f"c{i}" for i in range(25)]
    rows = "".join(",".join(str(i % 2) for _ in names) + f",v{i % 3}\n" for i in range(60))
    (tmp_path / "wide.csv").write_text(",".join([*names, "s"]) + "\n" + rows)
    done = cli("audit", tmp_path / "wide.csv", "-s", "s", "--public=all")
    assert "25 public columns" in " ".join(done.out.split()) and "--columns" in done.out
