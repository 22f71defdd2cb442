"""What goes into a message: one line, bounded, nothing that a terminal obeys, no secret."""

import json

import pytest

from reconpriv.errors import InputError
from reconpriv.messages.one_line import (
    LONGEST_SENTENCE,
    escaped_json,
    one_line,
    printable,
    sentence,
)
from reconpriv.messages.redaction import HIDDEN_KEY, without_secrets
from reconpriv.messages.text_files import parsed_json

KEY = "5e1fb00c" + "9a7d3c" * 4 + "0123456789abcdef" * 2


def test_control_characters_are_written_out():
    assert one_line("a\x1b[31mb\0c\u202ed\ud800") == r"a\x1b[31mb\x00c\u202ed\ud800"
    assert one_line("a \r\n b\nc") == "a b c"
    assert printable("a\x07\nb") == "a\\x07\nb"


def test_long_text_loses_its_middle_and_keeps_its_end():
    text = f"The condition {'1 + ' * 5_000}1 cannot be evaluated."
    assert len(sentence(text)) == LONGEST_SENTENCE
    assert sentence(text).endswith("cannot be evaluated.")
    assert len(sentence(f"No column {'x' * 10_000} here.")) < 250
    assert sentence("A short one.") == "A short one."


def test_errors_are_one_line_of_bounded_length():
    error = InputError("a\nb" * 3_000, hint="It has: " + "column\n" * 3_000)
    assert "\n" not in str(error)
    assert len(str(error)) <= 2 * LONGEST_SENTENCE + 1


def test_json_keeps_its_meaning():
    text = json.dumps({"a": "\x9b\u2028\n"}, ensure_ascii=False)
    assert escaped_json(text).isprintable()
    assert json.loads(escaped_json(text)) == json.loads(text)


@pytest.mark.parametrize("text", [f"No such option: --{KEY}", f"at {KEY.upper()}.", f"-s{KEY} x"])
def test_a_key_is_not_repeated(text):
    assert KEY not in without_secrets(text).lower()
    assert HIDDEN_KEY in without_secrets(text)


def test_the_name_of_a_file_is_not_taken_for_a_key():
    assert KEY in without_secrets(f"There is no file {KEY}.parquet.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested"),
        ("9" * 5_000, "digits"),
        ('"\\ud800"', "surrogate"),
        ("[\n", "line 2"),
    ],
)
def test_json_that_python_cannot_take_is_refused_in_words(text, why):
    with pytest.raises(ValueError, match=why):
        parsed_json(text)
    assert parsed_json('"\\ud83d\\ude00"') == "😀"
