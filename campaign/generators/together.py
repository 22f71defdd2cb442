"""Two publishers with one output at the same time."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

from campaign.case import DONE, REFUSED, Case, Generator, Outcome
from campaign.generators import publications as pub
from campaign.place import Place
from campaign.process import begin

_SECONDS = 60.0


def _make(rng: Random, place: Place) -> Case:
    source, form = rng.choice(pub.SOURCES), rng.choice(pub.FORMATS)
    overwrite = rng.random() < 0.5
    old = rng.choice((None, *pub.FORMATS)) if overwrite else None
    path = pub.lay_out(place, source, old=old)
    more = ("--overwrite",) if overwrite else ()
    steps = tuple(
        # Without --overwrite exactly one of them is refused; with it, neither is.
        replace(
            pub.publication(path, name, form, *more),
            codes=(DONE,) if overwrite else (DONE, REFUSED),
        )
        for name in ("new", "other")
    )
    facts = {"form": form, "old": old, "overwrite": overwrite, "apart": rng.uniform(-0.05, 0.05)}
    return Case(f"{source} to {form}, {'--overwrite' if overwrite else 'new'}", steps, facts)


def _run(case: Case, place: Place) -> list[Outcome]:
    form, old, apart = (case.facts[name] for name in ("form", "old", "apart"))
    names = ("new", "other") if apart < 0 else ("other", "new")
    steps = dict(zip(("new", "other"), case.steps, strict=True))
    before = place.snapshot()
    running = {}
    for name in names:
        running[name] = begin(steps[name], place, f"-{name}")
        if name == names[0]:
            time.sleep(abs(apart))
    codes = {name: one.wait(_SECONDS) for name, one in running.items()}
    after, there = place.snapshot(), pub.which(place, form, old)
    done = {name for name, code in codes.items() if code == DONE}
    expected = len(done) == 2 if case.facts["overwrite"] else len(done) == 1
    if expected and there in done:
        after = {n: d for n, d in after.items() if not pub.is_out(n)}
        after |= {n: d for n, d in before.items() if pub.is_out(n)}
    elif done:  # changes to OUT are allowed to whoever is done, so a wrong one gets another name
        after["the wrong release"] = str(there)
    return [
        Outcome(
            codes[name], one.out.read_bytes(), one.err.read_bytes(),
            time.monotonic() - one.begun, before, after,
        )
        for name, one in sorted(running.items())
    ]  # fmt: skip


TWO = Generator(
    "two publishers",
    "one OUT at the same time, new and with --overwrite",
    0.3,
    _make,
    prepare=pub.prepare,
    run=_run,
)
