"""The choice of a key: the table's own, a new one, one of the user's, or the test key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from htmltools import Tag, tags
from shiny import ui

from reconpriv.studio.pieces.parts import check, download_link, field, options, titled
from reconpriv.studio.pieces.remedy_words import TEST_KEY
from reconpriv.studio.work.keys import NEVER_USED, TableKey

_TEST = (
    TEST_KEY,
    "For trying things out: everybody knows it, so the release is marked as not for release.",
)
_COST = (
    "the release is an independent second sample: averaged with the first, it reveals more"
    " about every group than the policy allows."
)


def key_options(known: TableKey | None, *, newer: bool = False) -> dict[str, tuple[str, str]]:
    """The keys to choose from, each with a title and an explanation; the first is the default.

    ``newer`` means that the key is that of an earlier upload of the same name.
    """
    if known is None:
        return {
            "generate": (
                "Generate a new key",
                "For a first release. The studio keeps it as this table’s key and offers it for"
                " download.",
            ),
            "own": (
                "Use my key",
                "For a table that was published before, or a key you already have.",
            ),
            "test": _TEST,
        }
    title = f"Use this table’s key ({known.origin})"
    words = "Publishing again with the same settings gives no second sample away."
    if newer:
        title = f"Use the key of the earlier {known.shown} ({known.origin})"
        words = (
            "A different file of this name was published before. A table that has grown or"
            " been corrected keeps its key."
        )
    return {
        "table": (title, words),
        "own": ("Use another key of mine", f"If it is not the key of the first release, {_COST}"),
        "another": (
            "Make another key",
            f"With a new key, {_COST} It replaces the key above: download that one first.",
        ),
        "test": _TEST,
    }


def key_radios(choices: dict[str, tuple[str, str]], kind: str) -> Tag:
    """The choice itself; what was chosen stays so, except a key of which the table now has one."""
    shown = {name: titled(tags.strong(title), words) for name, (title, words) in choices.items()}
    kept = kind == "test" or (kind in choices and "table" not in choices)
    chosen = kind if kept else next(iter(choices))
    return tags.fieldset(
        tags.legend("Key"), options("radio", "key_kind", shown, [chosen], look="radio")
    )


def key_fields(draft: Mapping[str, Any]) -> Tag:
    """Three ways to give a key; one that is typed is kept nowhere."""
    return tags.div(
        field("key_text", "64 hexadecimal digits", type="password"),
        field(
            "key_path", "or the path of a key file on this computer",
            tags.p("The ledger beside it is checked and kept up, as on the command line.",
                   class_="help"),
            value=draft.get("key_path", ""),
        ),
        ui.input_file("key_file", "or a key file, together with its .ledger and .trials files",
                      multiple=True, button_label="Choose files…",
                      placeholder="Nothing chosen", width="100%"),
        class_="own-key",
    )  # fmt: skip


def unused_key_box() -> Tag:
    """What must be confirmed before a key starts a new ledger."""
    return check("key_unused", tags.strong(NEVER_USED), "Start its ledger.")


def key_notice(known: TableKey, *, fresh: bool, kept: bool = True) -> Tag:
    """The key of this table and its ledger, for the user to save; ``kept`` if they are here."""
    words = (
        f"A new key was made for {known.shown}. Download it now and keep it apart from the release,"
        " readable by you alone. The studio keeps it until it closes; without it, the next release"
        " of this table is a second sample."
        if fresh
        else f"The key of {known.shown} ({known.origin}) is kept until the studio closes."
    )
    links = [download_link("get_table_key", "Download the key")]
    if kept:
        words += (
            " Its ledger records what was published with it. Save it beside the key, and give both"
            " the next time, here or on the command line. It continues the one that you gave or"
            " downloaded here before. If any other ledger of this key turns up, keep it, and give"
            " it together with the key."
        )
        links.append(download_link("get_table_ledger", "Download its ledger"))
    elif known.key.file is not None:
        words += f" This release is recorded in {known.key.file.name}.ledger, beside the key."
    return tags.div(
        tags.span("i", {"aria-hidden": "true"}, class_="mark"),
        tags.div(tags.p(words), tags.div(*links, class_="key-links")),
        class_="notice info key-notice",
    )
