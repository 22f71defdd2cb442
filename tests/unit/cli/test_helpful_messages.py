"""Slips that a message can put right: what it says works when it is pasted."""

import gzip
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import reconpriv as rp
from refusals import Desk

CITIES = ["Zürich", "Genève", "Bern"]
TABLE = "city,sex,ill\n" + "".join(
    f"{CITIES[i % 3]},{'fm'[i % 2]},{'abc'[(i * i) % 5 % 3]}\n" for i in range(60)
)


@pytest.fixture
def desk(cli, tmp_path, scratch):
    return Desk(tmp_path, scratch, cli)


def pasted(message, folder):
    """Run the command that a message ends with; the file that it made."""
    assert "this command" in message
    subprocess.run(["sh", "-c", message.rpartition("command")[2].partition(": ")[2]],
                   cwd=folder, check=True)  # fmt: skip
    made = folder / shlex.split(message.partition("Read ")[2].partition(" instead")[0])[0]
    assert made.exists()
    return made


@pytest.mark.parametrize(
    ("encoding", "text", "named"),
    [
        ("latin-1", TABLE, "ISO-8859-1"),
        ("cp1252", TABLE.replace("Bern", "Bern “€”"), "WINDOWS-1252"),
        ("utf-16", TABLE, "UTF-16"),
        ("utf-16-le", TABLE, "UTF-16LE"),
        ("utf-16-be", TABLE.replace("ü", "u").replace("è", "e"), "UTF-16BE"),
        ("utf-32", TABLE, "UTF-32"),
        ("latin-1", "city,sex,ill\n" + "Bern,f,a\n" * 200_000 + TABLE[13:], "ISO-8859-1"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "the table's.v2.csv", "t.csv.gz"])
def test_the_command_for_another_encoding_works(desk, cli, encoding, text, named, name):
    content = text.encode(encoding)
    content = gzip.compress(content) if name.endswith("gz") else content
    source = desk.source(name, content)
    message = desk.both(source, "-s", "ill", "--public=all")
    assert f"is not UTF-8 text; it looks like {named}." in message and "in its folder" in message
    made = pasted(message, source.parent)
    opened = gzip.open if name.endswith("gz") else open
    with opened(made, "rt", encoding="utf-8", newline="") as stream:
        assert stream.read().removeprefix("\ufeff") == text
    assert cli("audit", made, "-s", "ill", "--public=all", "--no-columns").code in (0, 1)


def test_a_file_in_the_current_folder_needs_no_other_words(desk, monkeypatch):
    source = desk.source("t.csv", TABLE.encode("latin-1"))
    monkeypatch.chdir(source.parent)
    assert "in its folder" not in desk.both("t.csv", "-s", "ill", "--public=all")


def test_an_encoding_that_cannot_be_told_is_not_guessed(desk):
    message = desk.both(
        desk.source("t.csv", TABLE.encode("mac-roman") + b"\x81\n"), "-s", "ill", "--public=all"
    )
    assert "looks like" not in message and "Save it as UTF-8." in message


def test_standard_input_in_another_encoding(desk, tmp_path):
    message = subprocess_error(["audit", "-", "-s", "ill", "--public=all"], TABLE.encode("latin-1"))
    assert message == (
        "error: standard input is not UTF-8 text; it looks like ISO-8859-1."
        " Send it through iconv -f ISO-8859-1 -t UTF-8 first.\n"
    )


def subprocess_error(words, given):
    program = [sys.executable, "-m", "reconpriv", *words]
    done = subprocess.run(program, input=given, capture_output=True, check=False)
    assert done.returncode == 2
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("above", "lines", "said"),
    [
        ("sep=;\n", 2, "a line for Excel (sep=)"),
        ('"sep=;"\r\n', 2, "a line for Excel (sep=)"),
        ("Patients of 2024\n", 2, "a title"),
        ("Patients of 2024;;\n", 2, "a title"),
        ("Patients of 2024\n\n", 3, "a title"),
        ("Patients\nOf 2024\n;;\n", 4, "a title"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_lines_above_the_header_are_taken_off(desk, cli, above, lines, said, name):
    text = (above + TABLE.replace(",", ";")).encode()
    source = desk.source(name, gzip.compress(text) if name.endswith("gz") else text)
    message = desk.both(source, "-s", "ill", "--public=all")
    assert f"{name} starts with {said} instead of the names of its columns." in message
    assert f"tail -n +{lines}" in message and "Patients" not in message
    assert cli("audit", pasted(message, source.parent), "-s", "ill", "--public=all").code in (0, 1)


@pytest.mark.parametrize("rows", ["a\nb\n", '"a, x"\n"b, y"\n'])
def test_a_single_column_is_not_taken_for_a_title(desk, cli, rows):
    assert cli(
        "audit", desk.source("t.csv", "ill\n" + rows * 20), "-s", "ill", "--public=all"
    ).code in (0, 1)


@pytest.fixture
def release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE, encoding="utf-8")
    with rp.read("t.csv", sensitive="ill", public="all") as table:
        return table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), "release", key=rp.Key.generate()
        )


@pytest.mark.parametrize("command", ["info", "query"])
def test_a_zipped_release_is_to_be_unzipped(cli, release, command):
    shutil.make_archive("release", "zip", ".", "release")
    assert zipfile.is_zipfile("release.zip")
    done = cli(command, "release.zip", *["SELECT count(*) FROM release"] * (command == "query"))
    assert done.code == 2 and "release.zip is a zip file" in done.err and "Unzip it" in done.err
    with pytest.raises(rp.ReconprivError, match="Unzip it"):
        rp.open("release.zip")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('sex = "f"', "sex = 'f'"),
        ("sex = f", "sex = 'f'"),
        ('sex IN ("f", "m")', "sex IN ('f', 'm')"),
        ('"sex" <> "f"', "sex <> 'f'"),
        ('ill = "it\'s"', "ill = 'it''s'"),
    ],
)
def test_a_text_in_the_quotes_of_a_name_is_corrected(cli, release, wrong, right):
    with pytest.raises(rp.ReconprivError) as caught:
        release.count(wrong)
    assert "a text goes in single quotes" in str(caught.value)
    assert str(caught.value).endswith(f"Write: {right}")
    done = cli("query", "release", f"SELECT count(*) FROM release WHERE {wrong}")
    assert done.code == 2 and right in done.err
    if "it" not in right:
        assert release.count(right).count > 0


@pytest.mark.parametrize("wrong", ["\"sexx\" = 'f'", "sexx = 'f'", "sex = seex"])
def test_a_misspelt_column_is_still_one(release, wrong):
    with pytest.raises(rp.ReconprivError, match="Did you mean 'sex'"):
        release.count(wrong)


def test_a_table_given_as_a_key_is_no_key(desk, cli, release):
    files = ["t.csv", "release/data.parquet", "release/datapackage.json"]
    for mode in (0o600, 0o644):
        for file in files:
            Path(file).chmod(mode)
            done = cli("publish", "t.csv", "out", "-s", "ill", "--public=all", "--key", file)
            assert done.code == 2 and f"{file} is not a key file" in done.err, done
            assert "chmod" not in done.err and not Path("out").exists()


@pytest.mark.parametrize(
    ("option", "forms"),
    [
        ("--bin", "Write a width (10), borders (0,18,65, with top:99"),
        ("--group", "Give a CSV file with a header"),
        ("--protect", "Give a width (10), borders (0,18,65), * to ignore"),
    ],
)
@pytest.mark.parametrize("text", ["city", "city="])
def test_an_option_without_its_value_says_what_it_takes(desk, option, forms, text):
    message = desk.both(desk.source("t.csv", TABLE), "-s", "ill", "--public=all", option, text)
    assert f"{option} takes COLUMN=…; got only the column 'city'. {forms}" in message


SIDE_FILES = {"--domain": "domain file", "--group": "file of groups", "--protect": "file of groups"}


@pytest.mark.parametrize("option", SIDE_FILES)
def test_a_device_or_an_endless_pipe_is_not_read_to_its_end(desk, option):
    source = desk.source("t.csv", TABLE)
    given = "/dev/zero" if option == "--domain" else "city=/dev/zero"
    message = desk.both(source, "-s", "ill", "--public=all", option, given)
    assert f"The {SIDE_FILES[option]} /dev/zero cannot be read: it is a device." in message
    words = f"{sys.executable} -m reconpriv audit {source} -s ill --public all {option}"
    pipe = "<(yes)" if option == "--domain" else "city=<(yes)"
    # bash makes no pipe behind a =.
    line = f"exec 9< <(yes); {words} {pipe.replace('<(yes)', '/dev/fd/9')}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=60)
    assert done.returncode == 2 and b"is larger than 100 MB" in done.stderr, done


def test_side_files_may_come_from_a_pipe(release):
    words = f"{sys.executable} -m reconpriv"
    audit = f"{words} audit t.csv -s ill --public all"
    lines = [
        f"{audit} --domain <(printf 'a\\nb\\nc\\nd\\n') --no-columns",
        f"exec 9< <(printf 'v,g\\n*,any\\n'); {audit} --protect city=/dev/fd/9",
        f"{words} query release --batch <(printf 'sex\\nf\\n') -o answers.csv",
    ]
    for line in lines:
        done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=60)
        assert done.returncode in (0, 1) and not done.stderr.startswith(b"error"), done
    assert Path("answers.csv").read_text(encoding="utf-8").startswith("sex,count")


def test_an_empty_path_is_refused_in_python_too(release):
    with (
        rp.read("t.csv", sensitive="ill", public="all") as table,
        pytest.raises(rp.ReconprivError) as caught,
    ):
        table.publish(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), "")
    assert str(caught.value) == "out is an empty path."
