"""Commands of a few lines: retention, keygen and demo."""

from __future__ import annotations

from pathlib import Path

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import REQUIRED, argument, option
from reconpriv.cli.process.output import show, show_json
from reconpriv.cli.process.streams import echo
from reconpriv.messages.redaction import shown_path


def retention(
    rho1: float = option("--rho1", "The belief before seeing a published value.", REQUIRED),
    rho2: float = option("--rho2", "The largest belief allowed after seeing it.", REQUIRED),
    domain_size: int = option("-m, --domain-size", "The number of sensitive values.", REQUIRED),
    json: bool = opt.JSON,
) -> None:
    """Find the largest retention p with ρ1-ρ2 privacy, and its local differential privacy level."""
    from reconpriv.theory.perturbation import local_privacy_level, retention_for_privacy

    p = retention_for_privacy(rho1, rho2, domain_size)
    level = local_privacy_level(p, domain_size)
    if json:
        show_json({"retention": p, "local_dp_epsilon": level, "domain_size": domain_size})
    else:
        echo(f"largest retention p   {p:.6g}")
        echo(f"local-DP level        ε = {level:.6g}")


def keygen(file: Path = argument("FILE", "Where to write the key."), json: bool = opt.JSON) -> None:
    """Make a secret 256-bit key that only you can read; never overwrites a file."""
    from reconpriv.cells.randomness import Key
    from reconpriv.writing.marker import refuse_inside_release

    refuse_inside_release(file, "the key")
    Key.generate().write(file)
    if json:
        show_json({"key_file": str(file), "bits": 256})
    else:
        echo(
            f"Key written to {shown_path(file)} (256 bits, mode 0600)."
            " Keep it secret, keep it safe:\n"
            "anyone who has it can undo the randomisation; if you lose it, publishing the\n"
            "same table again gives adversaries a second, independent sample."
        )


def demo(
    out: Path | None = option("--out DIR", "Keep the release here instead of removing it."),
    json: bool = opt.JSON,
) -> None:
    """Audit, publish and query a real table (48,842 people; occupation is sensitive)."""
    from reconpriv.cli.commands.demo import demo_document, run_demo

    result = run_demo(out)
    if json:
        show_json(result.as_dict())
    else:
        show(demo_document(result))
