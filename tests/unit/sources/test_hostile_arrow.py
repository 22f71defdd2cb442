"""Arrow files that made a library raise what nobody expects: refused in one sentence."""

import pyarrow as pa
import pyarrow.ipc
import pytest

from refusals import check_sentence

VALUES = {"region": ["north", "south"] * 30, "age": [1, 2] * 30, "income": ["good", "poor"] * 30}
PLAIN = pa.table(VALUES)
CODED = pa.table(
    {name: pa.array(VALUES[name]).dictionary_encode() for name in ("region", "income")}
)


def last(content, old, new):
    """The footer, at the end, repeats the schema."""
    at = content.rindex(old)
    return content[:at] + new + content[at + len(old) :]


def number(value, size):
    return value.to_bytes(size, "little")


# What is damaged, how, and what Arrow says of it.
DAMAGED = {
    "an unknown dictionary": (
        CODED,
        lambda content: last(content, number(1, 8), number(9, 8)),
        pa.ArrowKeyError,
    ),
    "a code without a value": (
        CODED,
        lambda content: last(content, number(0, 4) + number(1, 4), number(0, 4) + number(7, 4)),
        pa.ArrowInvalid,
    ),
    "integers of 128 bits": (
        PLAIN,
        lambda content: last(content, number(64, 4), number(128, 4)),
        pa.ArrowNotImplementedError,
    ),
    "a name that is not UTF-8": (
        PLAIN,
        lambda content: content.replace(b"region", b"reg\xffon"),
        UnicodeDecodeError,
    ),
    "a text that is not UTF-8": (
        PLAIN,
        lambda content: content.replace(b"northsouth", b"n\xffrthsouth", 1),
        pa.ArrowInvalid,
    ),
    "a text in a dictionary that is not UTF-8": (
        CODED,
        lambda content: content.replace(b"northsouth", b"n\xffrthsouth", 1),
        pa.ArrowInvalid,
    ),
}


def read_plainly(file):
    table = pa.ipc.open_file(file).read_all()
    table.validate(full=True)
    assert table.schema.names
    table.to_pylist()


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_arrow_file_is_refused_in_one_sentence(cli, tmp_path, name):
    table, damage, says = DAMAGED[name]
    file = tmp_path / "table.arrow"
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    read_plainly(file)
    content = file.read_bytes()
    file.write_bytes(damage(content))
    assert file.read_bytes() != content
    with pytest.raises(says):
        read_plainly(file)
    for command in (["audit", file], ["publish", file, tmp_path / "out", "--test-key"]):
        outcome = cli(
            *command,
            "-s",
            "income",
            "--public=all",
            *(["--no-columns"] if "audit" in command else []),
        )
        assert outcome.code == 2, outcome
        check_sentence(outcome.err)
        assert "table.arrow is damaged" in outcome.err
    assert not (tmp_path / "out").exists()
