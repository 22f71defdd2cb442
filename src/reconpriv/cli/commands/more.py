"""Short commands: retention, keygen, demo, doctor, ledger, studio and experiment."""

from __future__ import annotations

import os
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from reconpriv.cli.options.declared import REQUIRED, argument, option
from reconpriv.cli.process.output import Printed
from reconpriv.cli.process.progress import counting_steps
from reconpriv.cli.process.signals import nothing_begun
from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.redaction import shown_path


def retention(
    rho1: float = option("--rho1", "The belief before seeing a published value.", REQUIRED),
    rho2: float = option("--rho2", "The largest belief allowed after seeing it.", REQUIRED),
    domain_size: int = option("-m, --domain-size", "The number of sensitive values.", REQUIRED),
) -> Any:
    """Find the largest retention p with ρ1-ρ2 privacy, and its local differential privacy level."""
    from reconpriv.theory.perturbation import local_privacy_level, retention_for_privacy

    p = retention_for_privacy(rho1, rho2, domain_size)
    level = local_privacy_level(p, domain_size)
    return Printed(
        {"retention": p, "local_dp_epsilon": level, "domain_size": domain_size},
        f"largest retention p   {p:.6g}\nlocal-DP level        ε = {level:.6g}",
    )


def keygen(file: Path = argument("FILE", "Where to write the key.")) -> Any:
    """Make a secret 256-bit key that only you can read; never overwrites a file."""
    from reconpriv.cells.randomness import Key
    from reconpriv.writing.marker import refuse_inside_release

    refuse_inside_release(file, "the key")
    Key.generate().write(file)
    return Printed(
        {"key_file": str(file), "bits": 256},
        f"Key written to {shown_path(file)} (256 bits, mode 0600). Keep it secret, keep it safe:\n"
        "anyone who has it can undo the randomisation; if you lose it, publishing the\n"
        "same table again gives adversaries a second, independent sample.",
    )


def demo(
    out: Path | None = option("--out DIR", "Keep the release here instead of removing it."),
) -> Any:
    """Audit, publish and query a real table (48,842 people; occupation is sensitive)."""
    from reconpriv.cli.commands.demo import demonstrated

    return demonstrated(out)


def doctor() -> Any:
    """Show what is installed, what is missing and the command that adds it.

    Covers Python, the extras, Java and a browser. Exits 0 if everything that
    every installation needs is there, 1 if something is missing.
    """
    from reconpriv.doctor import examine

    found = examine()
    return Printed(found, code=0 if found.healthy else 1)


_ACTIONS = ("show", "verify", "repair", "withdraw")
_EXIT_NOT_SOUND = 1


def ledger(
    action: str = argument(
        "|".join(_ACTIONS),
        "Show the publications; check every line and the count of trials; remove a last line that"
        " lacks its end and a count that is not sound; or withdraw a release that was never handed"
        " out.",
    ),
    key: Path = argument("KEY", "The key file beside the ledger."),
    line: int | None = argument(
        "LINE", "With withdraw: the line of the publication, as show numbers it.", None
    ),
    why: str | None = option("--why REASON", "With withdraw: why nobody got the release."),
) -> Any:
    """Show or check what was published with a key: the ledger beside the key file.

    verify exits 0 if every line is as it was written and the count of trials goes
    with them, 1 if not. show refuses a ledger that fails verification. withdraw
    records that a release was never handed out, so that it no longer counts; its
    reason is kept in the ledger as you type it.
    """
    if action not in _ACTIONS:
        hint = f"Choose one of: {', '.join(_ACTIONS)}."
        raise PolicyError(f"A ledger cannot be asked to {action!r}.", hint=hint)
    if action != "withdraw" and (line is not None or why is not None):
        raise PolicyError(f"Only withdraw takes a line and a reason, not {action}.")
    from reconpriv.ledger.ledger import Ledger

    file = shlex.quote(str(key))
    if action == "withdraw":
        if line is None or why is None:
            raise PolicyError(
                "A withdrawal needs the line of a publication and a reason.",
                hint=f"See the lines with: reconpriv ledger show {file}; then:"
                f" reconpriv ledger withdraw {file} LINE --why REASON.",
            )
        done = Ledger(key).withdraw(line, why=why)
        return Printed({"withdrawn": line, "done": done}, " ".join(done))
    found = Ledger(key)
    if action == "show":
        return found
    repaired = found.repair() if action == "repair" else ()
    check = found.check()
    text = [check.verdict]
    if action == "repair":
        text.insert(0, " ".join(repaired) or "There was nothing to repair.")
    if check.repairable:
        text.append(f"To repair it: reconpriv ledger repair {file}")
    more = {"repaired": bool(repaired)} if action == "repair" else {}
    code = 0 if check.sound else _EXIT_NOT_SOUND
    return Printed(check, "\n".join(text), more=more, code=code)


def studio(
    table: str | None = argument(
        "TABLE",
        "The table to open, as for audit; you can also open or upload one in the page.",
        None,
    ),
    sensitive: str | None = option("-s, --sensitive", "The sensitive column."),
    port: int = option("--port", "The port to listen on; 0 picks a free one.", 0, min=0, max=65535),
    listen: str = option(
        "--listen ADDRESS",
        "The IPv4 address to listen on. In a container use 0.0.0.0, and publish the port on"
        " 127.0.0.1 only.",
        "127.0.0.1",
    ),
    no_browser: bool = option(
        "--no-browser", "Print the address without opening a browser.", False
    ),
) -> None:
    """Choose a policy with sliders and pictures, in a web app that runs on this machine only."""
    if find_spec("shiny") is None:
        from reconpriv.extras import install_hint

        raise PolicyError(
            "The studio needs Shiny, which is not installed.", hint=install_hint("studio")
        )
    if table == "-":
        raise InputError("The studio does not read standard input; give it a file.")
    # Several threads compute at once; more for each would wait for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with nothing_begun():
        from reconpriv.studio.server.serve import run_studio

    run_studio(
        table, sensitive=sensitive, port=port, listen=listen, browser=not no_browser, say=typer.echo
    )


def experiment(
    names: list[str] = argument(
        "NAME…", "all, or: distribution, violations, error, dp-tables, margins."
    ),
    out: Path = option("--out DIR", "Where to write results, figures and the page.", Path("study")),
    fast: bool = option(
        "--fast", "Use fewer keys, queries and draws, to finish in minutes.", False
    ),
    data: Path | None = option(
        "--data FILE",
        "Your own extract with Age, Gender, Education, Marital, Race, Workclass, Occupation (CSV or"
        " Parquet) instead of the bundled census workers.",
    ),
    overwrite: bool = option("--overwrite", "Replace DIR if it is an earlier run.", False),
) -> Any:
    """Re-run the paper's empirical study: write CSV, figures and a page on which claims hold."""
    from reconpriv.research.run import STEPS, run_study

    wanted = STEPS if "all" in names else {n: s for n, s in STEPS.items() if n in names}
    with counting_steps(sum(wanted.values())) as step:
        return run_study(names, out, fast=fast, data=data, overwrite=overwrite, step=step)
