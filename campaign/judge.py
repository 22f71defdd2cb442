"""The rules, the same for every case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from campaign.case import Case, Fault, Generator, Outcome, Step
from campaign.place import KEY, RAW, VAULT, Place

HANG, STATUS, MESSAGE, LEFT, SECRET, ANSWER = (
    "hang", "status", "message", "left behind", "secret", "answer",
)  # fmt: skip
RULES = {
    STATUS: "exit status 0 or 2 (1 where a verdict is no; 129, 130 or 143 if told to end), never 70"
    " and never a signal",
    HANG: "an answer within the time limit",
    MESSAGE: "a refusal is one bounded sentence (and hint) without control characters",
    LEFT: "a refusal leaves desk and TMPDIR as they were; a success leaves what it was asked for",
    SECRET: "the planted key, path and values are nowhere in what was printed or written",
    ANSWER: "an answer equals a plain reference",
}
LONGEST = 1_010  # a sentence and a hint of 500 characters each
_LONGEST_BOX = 2_400  # a usage error: the usage, a hint and a box of borders around a sentence
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WORDS = ("Traceback", "unexpected happened", 'File "', "Exception ignored", "terminate called")

_INTERRUPTED = (129, 130, 143)
_LAST_WORDS = "interrupted: nothing unfinished was left behind."


def judged(case: Case, place: Place, outcomes: list[Outcome]) -> list[Fault]:
    """What the commands did wrong."""
    faults: list[Fault] = []
    for step, outcome in zip(case.steps, outcomes, strict=False):
        faults += _status(step, outcome)
        faults += _message(outcome)
        faults += _left(step, outcome)
        faults += _printed_secrets(outcome)
    faults += _written_secrets(place, outcomes)
    return faults


def compared(
    generator: Generator, case: Case, place: Place, outcomes: list[Outcome]
) -> list[Fault] | None:
    """What differs from the reference; None if there was nothing to compare."""
    ended = len(outcomes) == len(case.steps) and all(one.code in (0, 1) for one in outcomes)
    if generator.check is None or not ended:
        return None
    found = generator.check(case, place, outcomes)
    return None if found is None else [Fault(ANSWER, one) for one in found]


def _status(step: Step, outcome: Outcome) -> Iterator[Fault]:
    if outcome.code is None:
        yield Fault(HANG, f"no end after {outcome.seconds:.0f} s")
    elif outcome.code not in step.codes:
        yield Fault(STATUS, f"{outcome.code}; {outcome.err[-300:].decode(errors='replace')}")


def _message(outcome: Outcome) -> Iterator[Fault]:
    out, err = (text.decode("utf-8", "surrogateescape") for text in (outcome.out, outcome.err))
    for text, where in ((out, "standard output"), (err, "standard error")):
        if _CONTROL.search(text):
            yield Fault(MESSAGE, f"control character {_CONTROL.search(text)} in {where}")
    for word in _WORDS:
        if word in err:
            yield Fault(MESSAGE, f"{word!r} in standard error")
    if outcome.code in _INTERRUPTED and err.splitlines()[-1:] != [_LAST_WORDS]:
        yield Fault(MESSAGE, f"not one sentence: {err[:200]!r}")
    if outcome.code == 2:
        if out:
            yield Fault(MESSAGE, "a refusal prints to standard output")
        if err.startswith("Usage: "):
            if len(err) > _LONGEST_BOX:
                yield Fault(MESSAGE, f"a usage error of {len(err):,} characters")
            return
        *said, last = err.splitlines() or [""]
        if not last.startswith("error: ") or any(
            not line.startswith(("warning: ", "note: ")) for line in said
        ):
            yield Fault(MESSAGE, f"not one sentence: {err[:200]!r}")
        if len(last) > LONGEST:
            yield Fault(MESSAGE, f"{len(last):,} characters")


# The ledger is appended to before a release is final, and keeps the line of one that then failed.
BESIDE_KEY = {"desk/my.key.ledger", "desk/my.key.trials"}


def _left(step: Step, outcome: Outcome) -> Iterator[Fault]:
    before, after = outcome.before, outcome.after
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if outcome.code in (0, 1):
        allowed = {f"desk/{name}" for name in step.writes}
        changed = {name for name in changed if not {name, *map(str, Path(name).parents)} & allowed}
    changed -= BESIDE_KEY
    if changed:
        yield Fault(LEFT, ", ".join(sorted(changed)[:5]))


_SECRETS = {"key": KEY.encode(), "path": VAULT.encode(), "raw value": RAW.encode()}


def _printed_secrets(outcome: Outcome) -> Iterator[Fault]:
    # A box folds long words, and puts its borders between the parts.
    plain = re.sub(rb"[\s\xe2\x94\x82]+", b"", outcome.out + b"\n" + outcome.err)
    for name, secret in _SECRETS.items():
        if secret in plain or secret in outcome.out + outcome.err:
            yield Fault(SECRET, f"the {name} was printed")


def _written_secrets(place: Place, outcomes: list[Outcome]) -> Iterator[Fault]:
    first, last = outcomes[0].before, outcomes[-1].after
    for name in sorted(last.keys() - first.keys()):
        file = place.root / name
        if not file.is_file():
            continue
        content = file.read_bytes()
        if file.suffix == ".parquet":
            content += _parquet_text(file)
        for secret, planted in _SECRETS.items():
            # The name of a file can hold a planted path only if someone put it there.
            if planted in content or bytes.fromhex(KEY) in content:
                yield Fault(SECRET, f"the {secret} is in {name}")


def _parquet_text(file: Path) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - starts threads, which a fork would not survive
    import pyarrow.parquet as pq  # noqa: PLC0415 - starts threads, which a fork would not survive

    try:
        table = pq.read_table(file)
    except pa.ArrowInvalid:
        return b""  # a command was told to write something else to a file of that name
    values = (str(one) for column in table.columns for one in column.unique().to_pylist())
    return "\n".join([*values, str(table.schema.metadata)]).encode(errors="replace")
