"""``python -m campaign``: run it, show what failed, and renew the page."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

# Before NumPy: forked workers with a BLAS thread each would only wait for each other.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from campaign.registry import GENERATORS, plan
from campaign.run import Result, prepare, run_all, warm_up
from campaign.summary import failures, table, write_page

CASES, LONG, SEED = 10_000, 200_000, 16


def main() -> int:
    """Run the campaign; the exit status says whether anything failed."""
    words = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    words.add_argument("--cases", type=int, default=CASES, help=f"how many ({CASES:,})")
    words.add_argument("--long", action="store_true", help=f"a night: {LONG:,} cases")
    words.add_argument(
        "--seed", type=int, default=SEED, help=f"the same seed, the same cases ({SEED})"
    )
    words.add_argument("--only", action="append", choices=list(GENERATORS), help="these generators")
    words.add_argument("--case", type=int, help="with one --only: this case alone, kept")
    words.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    words.add_argument("--keep", type=Path, help="copy the folder of every failed case here")
    words.add_argument("--write", action="store_true", help="renew docs/reliability.md")
    given = words.parse_args()
    cases = plan(LONG if given.long else given.cases, given.only)
    if given.case is not None:
        cases = [(GENERATORS[given.only[0]], given.case)]
    begun = time.monotonic()
    results: list[Result] = []
    # Not a TemporaryDirectory: the exit of a forked command would remove it.
    folder = Path(tempfile.mkdtemp(prefix="campaign-"))
    try:
        warm_up()
        prepare({one.name: one for one, _ in cases}.values(), folder / "shared")
        for result in run_all(cases, given.seed, folder, jobs=given.jobs, keep=given.keep):
            results.append(result)
            if result.faults:
                print(failures([result]).splitlines()[0], file=sys.stderr, flush=True)
            if len(results) % 500 == 0:
                print(f"{len(results):,} of {len(cases):,}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - begun
    text = table(results, GENERATORS.values())
    print(text)
    print(f"\n{len(results):,} cases in {seconds:.0f} s on {given.jobs} cores, seed {given.seed}")
    failed = failures(results)
    if failed:
        print(f"\n{failed}")
    if given.write:
        write_page(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
