"""The controls of the policy step: presets, numbers, harmless values, protection groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconpriv as rp
from reconpriv.policy.presets import PRESETS, Fitted, preset
from reconpriv.studio.pieces.parts import dial
from reconpriv.studio.pieces.policy_controls import (
    START,
    controls_of,
    faults_of,
    harmless_boxes,
    policy_of,
    protection_of,
    said_of,
    suited,
)
from reconpriv.studio.steps.choose_policy import panel

RECOMMENDED = preset("recommended")


@pytest.mark.parametrize("name", PRESETS)
def test_the_controls_show_every_preset_as_it_is(name):
    assert policy_of(controls_of(preset(name))) == preset(name)
    assert "Changed" not in str(said_of(PRESETS[name], suited(PRESETS[name], None), preset(name)))


def test_the_recommended_preset_is_fitted_to_the_table_and_no_other(adult_loaded):
    assert suited(PRESETS["recommended"], adult_loaded).policy == RECOMMENDED
    schema = replace(adult_loaded.table.schema, public=adult_loaded.table.schema.public[:1])
    table = type("Table", (), {"schema": schema})
    fitted = suited(PRESETS["recommended"], replace(adult_loaded, table=table))
    assert not fitted.policy.margins
    assert "No margins are published" in str(said_of(PRESETS["recommended"], fitted, None))
    assert suited(PRESETS["paper"], replace(adult_loaded, table=table)).policy == preset("paper")


def test_a_changed_preset_says_what_was_changed():
    changed = replace(RECOMMENDED, doubt=0.1, harmless=("a", None))
    words = str(said_of(PRESETS["recommended"], Fitted(RECOMMENDED, ("A note.",)), changed))
    assert "A note." in words
    assert "Changed from recommended" in words
    assert "doubt: 0.05 → 0.1; harmless values: none → a, (missing)." in words


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ("exposed_above", "φ."),
        ("retention", "p."),
        ("tolerance", "tolerance."),
        ("doubt", "doubt."),
        ("margins", "the ε of margins."),
    ],
)
def test_an_empty_box_asks_for_its_number(control, words):
    """Not even margins, where 0 is a number: nobody said that there are to be none."""
    assert set(faults_of(START).values()) == {""}
    faults = faults_of({**START, control: None})
    assert faults.pop(control) == f"Enter a number for {words}"
    assert set(faults.values()) == {""}


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("exposed_above", 1.5),
        ("retention", 0),
        ("retention", 1.2),
        ("tolerance", 0),
        ("doubt", 7),
        ("margins", -1),
    ],
)
def test_only_the_box_with_an_impossible_number_is_marked(control, value):
    faults = faults_of({**START, "retention": 0.3, "doubt": 0.6, control: value})
    assert [name for name, words in faults.items() if words] == [control]
    assert "--" not in faults[control]


def test_a_box_that_was_emptied_stays_empty_when_the_page_is_loaded_again():
    html = str(dial("e", "ε", "Relative error", "", None, (0.05, 1.0, 0.05)))
    assert "value=" not in html
    assert 'id="e_fault"' in html


def test_every_value_can_be_called_harmless_even_a_missing_one(adult_loaded):
    html = str(harmless_boxes(adult_loaded, ["null"]))
    assert html.count('type="checkbox"') == 15
    assert html.count("checked") == 1
    assert "(missing)" in html


def test_protection_is_written_line_by_line():
    assert protection_of("") is None
    text = 'age, 10\n"a, b",*\n\ntown,0,5,10'
    assert protection_of(text) == {"age": "10", "a, b": "*", "town": "0,5,10"}
    policy = policy_of({**START, "margins": 0.0, "protect": text})
    assert policy.wanted_protection.as_dict() == {"age": 10, "a, b": "*", "town": [0, 5, 10]}
    for bad in ("age", "age,", "age,10\nage,5"):
        with pytest.raises(rp.ReconprivError, match=r"Line . of the protection"):
            protection_of(bad)
    assert text in str(panel({"protect": text})).replace("&quot;", '"')
