"""Number boxes of the policy step: an empty or impossible number is no policy."""

from __future__ import annotations

from typing import Any

import pytest

from reconpriv.studio.parts import dial
from reconpriv.studio.policy_controls import START, faults_of

DIALS = ("phi", "p", "e", "d", "m")


def test_the_first_values_are_fine() -> None:
    assert faults_of(START) == dict.fromkeys(DIALS, "")


@pytest.mark.parametrize(
    ("control", "words"),
    [("phi", "φ."), ("p", "p."), ("e", "ε."), ("d", "δ."), ("m", "the ε of margins.")],
)
def test_an_empty_box_asks_for_its_number(control: str, words: str) -> None:
    """Not even margins, where 0 is a number: nobody said that there are to be none."""
    faults = faults_of({**START, control: None})
    assert faults.pop(control) == f"Enter a number for {words}"
    assert set(faults.values()) == {""}


@pytest.mark.parametrize(
    ("control", "value"), [("phi", 1.5), ("p", 0), ("p", 1.2), ("e", 0), ("d", 7), ("m", -1)]
)
def test_only_the_box_with_an_impossible_number_is_marked(control: str, value: float) -> None:
    others: dict[str, Any] = {**START, "p": 0.3, "d": 0.6, control: value}
    faults = faults_of(others)
    assert [name for name, words in faults.items() if words] == [control]
    assert "--" not in faults[control]


def test_a_box_that_was_emptied_stays_empty_when_the_page_is_loaded_again() -> None:
    html = str(dial("e", "ε", "Relative error", "", None, (0.05, 1.0, 0.05)))
    assert "value=" not in html
    assert 'id="e_fault"' in html
