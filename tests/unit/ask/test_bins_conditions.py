"""Which bins a condition covers and which it cuts, against brute force over the numbers."""

import itertools
import operator
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconpriv.ask.bins import Covered, NumberRange, answer_test, in_interval
from reconpriv.columns.declared_groups import declared_groups
from reconpriv.columns.recoding import bins_between, bins_of_width
from reconpriv.errors import InputError

OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
    "<>": operator.ne,
}  # fmt: skip
WHOLE = [
    bins_of_width("x", Decimal(10), Decimal(-7), Decimal(31), whole=True),
    bins_of_width("x", Decimal(1), Decimal(0), Decimal(5), whole=True),
    bins_between("x", [Decimal(0), Decimal(1), Decimal(18), Decimal(65)], whole=True),
    bins_between("x", [Decimal("-3.5"), Decimal(2)], whole=True),
]
REAL = [
    bins_of_width("x", Decimal("2.5"), Decimal(-4), Decimal(6), whole=False),
    bins_between("x", [Decimal(0), Decimal("0.5"), Decimal(3)], whole=False),
]
NEAR = [Decimal(n) / 2 for n in range(-30, 150)]


@cache
def numbers_of(recoding, position):
    """Many numbers of a bin: all whole ones, or those a quarter apart and at its border."""
    low, high = recoding.interval(position)
    top = Fraction(high) if high is not None else Fraction(low) + 200
    step = Fraction(1) if recoding.whole else Fraction(1, 8)
    found = [Fraction(low)]
    while found[-1] + step < top:
        found.append(found[-1] + step)
    if not recoding.whole:
        found.append(top - Fraction(1, 10**9))
    return tuple(found)


def brute(recoding, test, also=None):
    labels, cut = [], []
    for i, label in enumerate(recoding.labels):
        numbers = list(numbers_of(recoding, i))
        low, high = recoding.interval(i)
        inside = also is not None and low <= also and (high is None or also < high)
        if inside and not recoding.whole:
            numbers.append(Fraction(also))
        truths = {test(number) for number in numbers}
        if True in truths:
            labels.append(label)
            if False in truths:
                cut.append(label)
    return Covered(tuple(labels), tuple(cut))


def answer(recoding, name, number):
    try:
        found = answer_test(recoding, name, [number], "", whole_bins=False)
    except InputError:
        return None
    labels = found.labels
    if found.negated:
        labels = tuple(label for label in recoding.labels if label not in labels)
    return Covered(labels)


@pytest.mark.parametrize("recoding", WHOLE + REAL, ids=lambda r: ",".join(r.labels[:3]))
@pytest.mark.parametrize("name", OPERATORS)
def test_a_comparison_covers_what_its_numbers_say(recoding, name):
    seen = set()
    for number in NEAR:
        expected = brute(recoding, lambda x, n=number: OPERATORS[name](x, Fraction(n)))
        found = answer(recoding, name, number)
        assert found == (None if expected.cut else expected), (name, number)
        seen.add(found is None)
    # Both happen among these numbers, but for bins of one number each.
    assert seen == ({False} if recoding is WHOLE[1] else {True, False})


@pytest.mark.parametrize("recoding", WHOLE + REAL, ids=lambda r: ",".join(r.labels[:3]))
def test_between_covers_what_its_numbers_say(recoding):
    for first, last in itertools.product(NEAR[::7], repeat=2):
        asked = in_interval(recoding, NumberRange(first, last))
        assert asked == brute(recoding, lambda x: Fraction(first) <= x <= Fraction(last))  # noqa: B023


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.integers(-50, 90), min_size=2, max_size=6, unique=True).map(sorted),
    st.lists(st.integers(-55, 95), min_size=1, max_size=12),
)
def test_a_list_of_whole_numbers_covers_a_bin_that_it_fills(borders, asked):
    recoding = bins_between("x", [Decimal(b) for b in borders], whole=True)
    expected = brute(recoding, lambda x: x in asked)
    try:
        found = Covered(answer_test(recoding, "=", asked, "", whole_bins=False).labels)
    except InputError:
        found = None
    assert found == (None if expected.cut else expected)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(WHOLE + REAL), st.sampled_from(list(OPERATORS)), st.decimals(-40, 120, places=2)
)
def test_whole_bins_hold_at_least_what_was_asked(recoding, name, number):
    found = answer_test(recoding, name, [number], "", whole_bins=True)
    expected = brute(recoding, lambda x: OPERATORS[name](x, Fraction(number)), number)
    labels = found.labels
    if name == "<>":  # the bin of the number is left out, as that of = is taken
        labels = tuple(label for label in recoding.labels if label not in labels)
        assert set(labels) == set(expected.labels) - set(expected.cut)
    else:
        assert labels == expected.labels
    assert (found.remark is not None) == bool(expected.cut)


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "1e-999999999", "9" * 400])
def test_numbers_of_any_size_are_compared(text):
    number = Decimal(text)
    for recoding in (WHOLE[0], REAL[0]):
        for name in ("<", "<=", ">", ">="):
            if number.copy_abs() > 1:
                every = (name in ("<", "<=")) == (number > 0)
                found = answer_test(recoding, name, [number], "", whole_bins=False)
                assert found.labels == (recoding.labels if every else ())


def test_a_refusal_names_the_bin_and_its_borders():
    with pytest.raises(InputError) as caught:
        answer_test(WHOLE[2], "<", [Decimal(20)], "x < 20", whole_bins=False)
    assert str(caught.value).startswith(
        "The condition x < 20 cuts the bin '18 to 64' of 'x'. Use a border (18 or 65), or allow"
    )
    with pytest.raises(InputError, match=r"'65 or more'.* Use a border \(65\)"):
        answer_test(WHOLE[2], ">", [Decimal(70)], "x > 70", whole_bins=False)
    with pytest.raises(InputError, match=r"'18 to 64'.* Ask for x < 18, or allow"):
        answer_test(WHOLE[2], "<=", [Decimal(18)], "x <= 18", whole_bins=False)
    with pytest.raises(InputError, match=r"'18 to 64'.* Ask for x >= 18, or allow"):
        answer_test(WHOLE[2], ">", [Decimal(18)], "x > 18", whole_bins=False)
    with pytest.raises(InputError, match=r"'65 or more'.* Ask for x >= 18 AND x < 65, or allow"):
        answer_test(WHOLE[2], "BETWEEN", [Decimal(18), Decimal(65)], "…", whole_bins=False)
    assert answer_test(WHOLE[2], "<", [Decimal(65)], "x < 65", whole_bins=False).remark is None
    with pytest.raises(InputError, match="cuts the bins '1 to 17', '18 to 64'"):
        answer_test(WHOLE[2], "BETWEEN", [Decimal(5), Decimal(20)], "…", whole_bins=False)


@pytest.mark.parametrize(
    ("name", "number", "remark"),
    [
        ("<", 20, "answered for x < 65: the bin '18 to 64' is counted whole"),
        (">=", 20, "answered for x >= 18: the bin '18 to 64' is counted whole"),
        ("<", 70, "answered for any x: the bin '65 or more' is counted whole"),
        ("=", 20, "answered for x = '18 to 64': the bin '18 to 64' is counted whole"),
        ("<>", 20, "answered for x <> '18 to 64': the bin '18 to 64' is left out whole"),
    ],
)
def test_a_remark_says_what_was_answered(name, number, remark):
    assert answer_test(WHOLE[2], name, [number], "", whole_bins=True).remark == remark


def test_groups_are_asked_by_label_or_by_all_of_their_values():
    said = {"BSc": "Degree", "MSc": "Degree", "HS": "School", "*": "Other", "None": "Other"}
    recoding = declared_groups("e", said)
    assert recoding.labels == ("Degree", "School", "Other")

    def asked(*values):
        return answer_test(recoding, "=", values, "e", whole_bins=False).labels

    assert asked("Degree") == ("Degree",)
    assert asked("HS") == ("School",)  # it is all of its group
    assert asked("MSc", "BSc", "Other") == ("Degree", "Other")
    with pytest.raises(InputError, match=r"part of the group 'Degree' of 'e'. Ask for the whole"):
        asked("BSc")
    with pytest.raises(InputError, match="part of the group 'Other'"):
        asked("None")  # others may be in it, too
    with pytest.raises(InputError, match="do not list 'PhD'"):
        asked("PhD")
    with pytest.raises(InputError, match="has no meaning"):
        answer_test(recoding, "<", ["M"], "e < 'M'", whole_bins=False)
    found = answer_test(recoding, "=", ["BSc"], "e", whole_bins=True)
    assert found.remark == "answered for e = 'Degree': the group 'Degree' is counted whole"


def test_a_value_that_no_group_lists_may_be_in_the_rest():
    recoding = declared_groups("e", {"BSc": "Degree", "MSc": "Degree", "*": "none"})
    with pytest.raises(InputError, match=r"if it occurs, it is in the group 'none'. Ask .*'none'"):
        answer_test(recoding, "=", ["PhD"], "e = 'PhD'", whole_bins=True)
    with pytest.raises(InputError, match="do not list 3:"):
        answer_test(recoding, "=", [Decimal(3)], "e = 3", whole_bins=False)


def test_a_label_is_written_as_sql_takes_it():
    recoding = declared_groups("e", {"BSc": "it's", "MSc": "it's"})
    with pytest.raises(InputError, match=r"\(e = 'it''s'\)"):
        answer_test(recoding, "=", ["BSc"], "e = 'BSc'", whole_bins=False)
    found = answer_test(recoding, "=", ["BSc"], "e = 'BSc'", whole_bins=True)
    assert found.taken_as == "e = 'it''s'"
