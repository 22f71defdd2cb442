"""A number that rounds to zero has no minus sign."""

import reconpriv as rp
from reconpriv.answers.figure import shown_number
from reconpriv.show.results.answers import answer_cells

NEARLY_ZERO = rp.Estimate(
    query="sex = 'f'", kind="count", name="count", value=-0.04, low=-0.0, high=12.25,
    confidence=0.95, standard_error=6.0, exact=False, estimator="mle",
    records=50, groups=3, trials=20.0,
)  # fmt: skip


def test_an_estimate_in_text_and_in_a_table():
    assert str(NEARLY_ZERO).startswith("0.0 (95 % interval")
    assert answer_cells(NEARLY_ZERO) == ("0.0", "0.0 to 12.2")


def test_other_figures():
    assert shown_number(-0.0) == "0"
    assert shown_number(-0.25) == "-0.25"
