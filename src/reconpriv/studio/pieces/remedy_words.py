"""How the studio words a remedy: the name of a control, or what to do elsewhere."""

from __future__ import annotations

from reconpriv.messages.remedies import Control, Remedy

MISSING = {"refuse": "Stop and tell me", "drop": "Leave them out", "value": "A value of its own"}
ROWS_PER_PERSON = {"refuse": "Refuse to publish", "one": "Keep one row of each"}
UNATTAINABLE = {"refuse": "Refuse to publish", "one-trial": "Keep one trial each"}
SECOND_SAMPLE = "Publish a second sample"
ROLE_CHANGE = "Publish although a column changes its role"
TEST_KEY = "Use the test key"
ANSWER_WHOLE_BINS = "Answer for whole bins"
WEAKER = "Also suggest policies that protect single records less than mine"

_CHOICES = {Control.MISSING: MISSING, Control.UNATTAINABLE: UNATTAINABLE}
# {do} is what the library advises; empty if neither the page nor its user can do it.
_WORDS = {
    Control.BIN: "{do} in the roles step",
    Control.COLUMNS: "",
    Control.DATABASE: "download the release and load it from the command line",
    Control.DOMAIN: "choose another column",
    Control.DROP: "{do} in the roles step",
    Control.ENGINE: "",
    Control.EXPOSED_ABOVE: "{do} in the policy step",
    Control.GROUP: "{do} in the roles step",
    Control.HARMLESS: "tick it under “Harmless values” in the policy step",
    Control.KEEP_GIVEAWAY: "{do} by ticking the box in the publish step",
    Control.KEEP_IDENTIFIER: "{do} by ticking the box in the publish step",
    Control.KEY: "let the studio generate one",
    Control.LABELS: "",
    Control.LEDGER: "give the ledger together with its .trials file, or restore both from a backup",
    Control.MARGINS: "{do} in the policy step",
    Control.MARGIN_TABLES: "choose the margin tables on the command line",
    Control.MASTER: "",
    Control.MAX_ERROR: "{do} in the policy step",
    Control.MAX_UNIQUE: "{do} by ticking the box in the publish step",
    Control.MEMORY: "use the command line, where you can allow more memory",
    Control.MISSING: "{do} with “{choice}” in the roles step",
    Control.OVERWRITE: "choose another name",
    Control.PERSON: "{do} in the roles step",
    Control.PLAIN: "",
    Control.PORT: "",
    Control.PUBLIC: "{do} in the roles step",
    Control.RHO2: "{do} in the policy step",
    Control.ROLE_CHANGE: f"if you must publish both, tick “{ROLE_CHANGE}” below",
    Control.ROWS_PER_PERSON: "{do} in the roles step",
    Control.SECOND_SAMPLE: f"if that is what you want, tick “{SECOND_SAMPLE}” below",
    Control.SQL: "{do} first",
    Control.TABLE: "open a file that holds one table only",
    Control.TEST_KEY: f"to try settings out, choose “{TEST_KEY}”",
    Control.THREADS: "",
    Control.TO_TABLE: "download the release and load it from the command line",
    Control.UNATTAINABLE: "{do} with “{choice}” in the policy step",
    Control.WEAKER_RECORDS: f"{{do}} with “{WEAKER}”",
    Control.WHOLE_BINS: f"{{do}} with “{ANSWER_WHOLE_BINS}”",
    Control.WITHDRAW: "if that release was never handed out, withdraw it on the command line",
}


def page_words(remedy: Remedy) -> str:
    """A remedy in terms of the page."""
    words = _WORDS[remedy.control]
    if "{do}" in words and "{}" in remedy.do:  # it needs a name, which the page asks for elsewhere
        return ""
    choice = _CHOICES.get(remedy.control, {}).get(f"{remedy.value}", "")
    return words.replace("{do}", remedy.do).replace("{choice}", choice)
