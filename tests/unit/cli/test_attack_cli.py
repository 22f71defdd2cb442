"""`reconpriv attack`: text, JSON, releases, and clear errors."""

import json
from shlex import split

import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.attacks import ATTACKS, Effort, attack, attack_release
from reconpriv.attacks.run import on_releases
from reconpriv.policy.policy import Policy


@pytest.fixture(scope="module")
def file(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("attack") / "small.parquet"
    pq.write_table(small, path)
    return path


@pytest.fixture(scope="module")
def releases(file, key, tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    made = {}
    with rp.read(file, sensitive="Education", public="all") as table:
        for size in ("paper", "octave", "none"):
            policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size)
            made[size] = table.publish(policy, folder / size, key=key).path
    return made


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_runs_on_a_table(cli, file, name):
    given = ["-s", "Education", "--public=all", "--preset", "paper", "--sampling", "paper"]
    given += ["--json"]
    if name == "persons":
        numbered = "SELECT *, row_number() OVER () // 3 AS pid FROM input"
        given += ["--person", "pid", "--sql", numbered]
    done = cli("attack", name, file, *given)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["attack"] == name
    assert result["verdict"].endswith(".")
    assert set(result["success"]) == {"what", "successes", "trials", "share", "interval"}
    assert result["control"] is not None


def test_text_has_the_verdict_first_and_says_what_is_internal(cli, file):
    done = cli("attack", "micro", file, "-s", "Education", "--public=all")
    assert done.code == 0
    assert done.out.startswith("With perturbation alone, f is")
    assert "internal: not for release" in done.out


@pytest.mark.parametrize("name", on_releases())
@pytest.mark.parametrize("size", ["paper", "octave"])
def test_a_release_can_be_attacked_without_its_table(cli, releases, name, size):
    done = cli("attack", name, releases[size], "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["baseline"] is None
    assert result["worst_groups_internal"] == []
    assert (result["success"] is None) == (name != "side-channels")


def test_guesses_from_a_paper_release_are_near_the_truth(releases, file):
    """The adversary's own output, held against the table that the adversary lacks."""
    result = attack_release("granularity", releases["paper"], show=3)
    raw = pq.read_table(file).to_pandas()
    for row in result.table:
        same = raw
        for name, value in row["group"].items():
            same = same[same[name] == value]
        truth = same["Education"].value_counts(normalize=True).iloc[0]
        assert abs(row["inferred f"] - truth) / truth < 0.25


def test_the_exact_bound_can_be_attacked_where_it_can_be_published(cli, file):
    done = cli(
        "attack",
        "micro",
        file,
        *split("-s Education --public=all -d 0.1 --bound exact --sampling paper --json"),
    )
    assert done.code == 0, done.err
    sizes = [row["sampling"] for row in json.loads(done.out)["table"]]
    assert sizes == ["none", "public", "octave", "paper"]


def test_the_library_gives_the_same_as_the_command(cli, file):
    with rp.read(file, sensitive="Education", public="all") as table:
        result = attack(
            "micro", table, Policy(retention=0.5, tolerance=0.5, doubt=0.3), Effort(keys=2)
        )
    done = cli("attack", "micro", file, "-s", "Education", "--public=all", "--keys", "2",
               "--preset", "paper", "--json")  # fmt: skip
    assert json.loads(done.out)["table"] == json.loads(json.dumps(result.as_dict()))["table"]
