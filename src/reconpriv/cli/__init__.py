"""The command line: parse, call the library, print."""

from __future__ import annotations

import os
import warnings


def main() -> None:
    """Run the command line; the entry point of the ``reconpriv`` script."""
    # First of all: a signal during the imports must not print a traceback either.
    from reconpriv.cli.signals import ignore_signals, stop_on_signals
    from reconpriv.cli.streams import open_closed_streams

    stop_on_signals()
    open_closed_streams()
    # Before NumPy: our matrices are small, and BLAS threads that wait for a busy core use it up.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from reconpriv.cli.app import app
    from reconpriv.cli.completion import mend_split_word
    from reconpriv.cli.no_pandas import start_without_pandas
    from reconpriv.errors import ReconprivWarning

    # Show each warning once, as a single line, rather than as Python's two lines.
    warnings.simplefilter("ignore", ReconprivWarning)
    start_without_pandas()
    mend_split_word(os.environ)
    try:
        app()
    finally:
        ignore_signals()
