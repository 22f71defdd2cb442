"""A typo among grouped values is pointed out where * would take the value that was meant."""

import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp

TABLE = pa.table(
    {
        "school": ["Bachelors", "Masters", "None"] * 20,
        "year": [2001, 2002, 2003] * 20,
        "member": [True, False, True] * 20,
        "ill": ["a", "b", "c", "a"] * 15,
    }
)
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
RIGHT = {"school": {"Bachelors": "degree", "Masters": "degree", "*": "other"}}
SOME = {"school": {"Bachelers": "degree", "Masters": "degree", "*": "other"}}
NONE = {"school": {"bachelors": "degree", "Master": "degree", "*": "other"}}


def note(values):
    return (
        f"The groups of 'school' list values that do not occur in the table: {values}."
        " If one of them is misspelt, the value that was meant is in 'other'."
    )


def as_file(groups, folder):
    lines = [f"{value},{group}" for value, group in groups["school"].items()]
    file = folder / "groups.csv"
    file.write_text("\n".join(["value,group", *lines]) + "\n", encoding="utf-8")
    return {"school": str(file)}


def read(group):
    return rp.read(TABLE, sensitive="ill", public="all", group=group)


def audited(protect):
    with rp.read(TABLE, sensitive="ill", public="all") as table:
        return table.audit(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect=protect)
        ).warnings


@pytest.mark.parametrize("in_file", [False, True])
def test_a_value_that_does_not_occur_is_named(in_file, tmp_path):
    said = as_file(SOME, tmp_path) if in_file else SOME
    with pytest.warns(rp.ReconprivWarning) as caught, read(said) as table:
        assert table.warnings == (note("'Bachelers'"),)
        assert [str(one.message) for one in caught] == [note("'Bachelers'")]
        assert note("'Bachelers'") in table.audit(POLICY).warnings
    assert audited(said) == (note("'Bachelers'"),)


@pytest.mark.parametrize("in_file", [False, True])
def test_groups_of_which_no_value_occurs_are_refused(in_file, tmp_path):
    said = as_file(NONE, tmp_path) if in_file else NONE
    sentence = (
        r"No value that the groups of 'school' list occurs in the table \('bachelors', 'Master'\),"
        r" so \* would put every record into 'other'\."
    )
    with pytest.raises(rp.ReconprivError, match=sentence):
        read(said)
    with pytest.raises(rp.ReconprivError, match=sentence):
        audited(said)


@pytest.mark.parametrize(
    "group",
    [
        RIGHT,
        {"school": {"*": "any"}},
        {"year": {2001: "early", 2002: "early", "*": "late"}},
        {"member": {True: "yes", "*": "no"}},
        {"school": {"Bachelors": "a", "Masters": "a", "None": "b", "Doctorate": "b"}},
    ],
)
def test_groups_that_fit_are_taken_without_a_word(group):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with read(group) as table:
            assert table.warnings == ()
    assert audited(group) == ()


def test_only_a_few_of_many_values_are_shown():
    many = {"school": {"Masters": "degree", **{f"v{i}": "w" for i in range(9)}, "*": "other"}}
    with pytest.warns(rp.ReconprivWarning), read(many) as table:
        assert table.warnings == (note("'v0', 'v1', 'v2', 'v3', 'v4', …"),)


def test_the_release_and_the_command_line_warn_too(cli, tmp_path):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect=SOME)
    with rp.read(TABLE, sensitive="ill", public="all") as table:
        release = table.publish(policy, tmp_path / "release", key=rp.Key.generate())
    assert note("'Bachelers'") in release.warnings
    manifest = (tmp_path / "release" / "datapackage.json").read_text(encoding="utf-8")
    assert "do not occur" not in manifest
    source = tmp_path / "t.parquet"
    pq.write_table(TABLE, source)
    for option in ("--group", "--protect"):
        file = as_file(SOME, tmp_path)["school"]
        done = cli("audit", source, "-s", "ill", "--public=all", option, f"school={file}")
        assert done.code in (0, 1) and f"warning: {note(repr('Bachelers'))}" in done.err
        file = as_file(NONE, tmp_path)["school"]
        out = tmp_path / "out"
        done = cli(
            "publish",
            source,
            out,
            "-s",
            "ill",
            "--public=all",
            "--test-key",
            option,
            f"school={file}",
        )
        assert done.code == 2 and "No value that the groups" in done.err and not out.exists()


def test_the_studio_shows_it_beside_the_verdict():
    verdict = pytest.importorskip("reconpriv.studio.pieces.verdict")
    with pytest.warns(rp.ReconprivWarning), read(SOME) as table:
        shown = str(verdict.verdict_card(table.audit(POLICY), POLICY, None))
    assert "Bachelers" in shown and 'class="notice warning"' in shown
