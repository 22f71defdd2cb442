"""Publications that get a signal, or two, at any moment; then another one runs to its end."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from random import Random

from campaign.case import DONE, Case, Generator, Outcome
from campaign.generators import publications as pub
from campaign.place import Place
from campaign.process import begin, begin_cold
from campaign.run import run_step

# What a publication exits with that a signal has told to end.
_ENDS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}
_COLD = 0.1  # how many cases start a whole process; the others fork one
_TWICE = 0.4
_SECONDS = 60.0
# How long an uninterrupted publication takes here and now, by the latest ones; imports make a cold
# one take several times as long.
_usual = {"seconds": 0.5}
_IMPORTS = 4.0


def _make(rng: Random, place: Place) -> Case:
    source, form = rng.choice(pub.SOURCES), rng.choice(pub.FORMATS)
    old = rng.choice((None, *pub.FORMATS))
    first = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    signals = [(int(first), rng.random())]
    if first != signal.SIGKILL and rng.random() < _TWICE:
        second = rng.choice(list(_ENDS))
        signals.append((int(second), rng.random() ** 3 * 0.2))
    path = pub.lay_out(place, source, old=old)
    step = pub.publication(path, "new", form, *(() if old is None else ("--overwrite",)))
    # A signal ends the process itself only before the command has begun; SIGKILL always does.
    ends = [code for number, _ in signals for code in (_ENDS[signal.Signals(number)], -number)]
    step = replace(step, codes=(DONE, *ends))
    facts = {"signals": signals, "form": form, "old": old, "cold": rng.random() < _COLD}
    names = " then ".join(signal.Signals(number).name for number, _ in signals)
    what = f"{names}, {source} to {form}, {'new' if old is None else 'overwrite'}"
    after = replace(pub.publication(path, "other", "parquet", out="next"), codes=(DONE,))
    return Case(what, (step, after), facts)


def _run(case: Case, place: Place) -> list[Outcome]:
    step, after = case.steps
    form, old, cold = case.facts["form"], case.facts["old"], case.facts["cold"]
    before = place.snapshot()
    running = begin_cold(step, place) if cold else begin(step, place)
    moment = 0.0
    whole_run = 1.1 * _usual["seconds"] * (_IMPORTS if cold else 1.0)
    for sent, (number, late) in enumerate(case.facts["signals"]):
        moment += late * (whole_run if not sent else 1.0)
        if not running.signal_after(number, moment):
            break
    code = running.wait(_SECONDS)
    seconds = time.monotonic() - running.begun
    out, err = running.out.read_bytes(), running.err.read_bytes()
    if cold and code in (1, -signal.SIGINT) and b"reconpriv" not in err:
        # Python itself had not started yet; it has an exit status and words of its own.
        code, err = -signal.SIGINT, b""
    left, found = place.snapshot(), pub.which(place, form, old)
    follower = run_step(after, place, _SECONDS)
    _usual["seconds"] += 0.3 * (follower.seconds - _usual["seconds"])
    ours = {
        name
        for name in left.keys() - follower.after.keys()
        if "/reconpriv-" in name.replace("/.", "/") or name.endswith("/.my.key.trials.new")
    }
    kept = {name: digest for name, digest in left.items() if name not in ours}
    if code == -signal.SIGKILL:
        # What a killed process leaves is the next one's to remove, or to put back.
        left, found = kept, pub.which(place, form, old)
    whole = {"new"} if code == 0 else {"new", "none" if old is None else "old"}
    if found in whole:
        left = {n: d for n, d in left.items() if not pub.is_out(n)}
        left |= {n: d for n, d in before.items() if pub.is_out(n)}
    first = Outcome(code, out, err, seconds, before, left)
    return [first, replace(follower, before=kept)]


KILLS = Generator(
    "kills",
    "SIGKILL, SIGTERM, SIGINT and SIGHUP at any moment of a publication, also two of them",
    2.85,
    _make,
    prepare=pub.prepare,
    run=_run,
)
