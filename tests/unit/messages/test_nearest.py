"""The name that a typo meant."""

import pytest

from reconpriv.columns.schema import Column, Kind, require_columns
from reconpriv.errors import InputError
from reconpriv.messages.nearest import column_hint, nearest_name, sql_column_hint

NAMES = ("age", "sex", "income", "education", "native_country", "hours-per-week")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("agee", "age"), ("aeg", "age"), ("SEX", "sex"), ("set", "sex"), ("incom", "income"),
        ("eduction", "education"), ("hours_per_week", "hours-per-week"),
        ("country", "native_country"),
    ],
)  # fmt: skip
def test_a_slip_finds_the_name_that_was_meant(asked, near):
    assert nearest_name(asked, NAMES) == near


@pytest.mark.parametrize(
    ("asked", "in_list", "in_sql"),
    [
        ("sax", "Did you mean 'sex'?", "Did you mean 'sex'?"),
        ("b", 'sex, "a,b", " ", """", b c.', 'sex, "a,b", " ", """", "b c".'),
        (
            "a.b",
            'In a list of columns, write "a,b", with the double quotes.',
            'In SQL, write "a,b", with the double quotes.',
        ),
        ("bc", "Did you mean 'b c'?", 'In SQL, write "b c", with the double quotes.'),
    ],
)
def test_a_hint_writes_odd_names_as_they_must_be_typed(asked, in_list, in_sql):
    known = ["sex", "a,b", " ", '"', "b c"]
    assert column_hint(asked, known).endswith(in_list)
    assert sql_column_hint(asked, known).endswith(in_sql)


@pytest.mark.parametrize("asked", ["zzz", "name", "code", "id", "weight", "a", "zip", ""])
def test_another_name_is_not_taken_for_a_slip(asked):
    assert nearest_name(asked, NAMES) is None


def test_a_far_away_column_of_a_table_is_answered_with_the_list():
    columns = [Column(name, Kind.STRING) for name in NAMES]
    with pytest.raises(InputError, match="It has: age, sex"):
        require_columns(columns, ["name"], "public")
    with pytest.raises(InputError, match="Did you mean 'education'"):
        require_columns(columns, ["educatoin"], "public")
