"""The command line: parse, call the library, print."""

from __future__ import annotations

import gc
import os
import sys
import warnings


def main() -> None:
    """Run the command line; the entry point of the ``reconpriv`` script."""
    # First of all: a signal during the imports must not print a traceback either.
    from reconpriv.cli.process.signals import ignore_signals, stop_on_signals, stopped
    from reconpriv.cli.process.start import start_without_pandas, with_asked_command
    from reconpriv.cli.process.streams import (
        give_up_printing,
        open_closed_streams,
        print_any_character,
        say_no_more,
    )

    stop_on_signals()
    open_closed_streams()
    print_any_character()
    # What commands import stays, and their numbers are in arrays: by default, Python would search
    # for garbage 200 times during an audit.
    gc.set_threshold(100_000)
    # Before NumPy: our matrices are small, and BLAS threads that wait for a busy core use it up.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from reconpriv.cli.app import app
    from reconpriv.cli.process.completion import mend_split_word
    from reconpriv.cli.process.output import EXIT_BAD_INPUT
    from reconpriv.errors import ReconprivWarning

    # Show each warning once, as a single line, rather than as Python's two lines.
    warnings.simplefilter("ignore", ReconprivWarning)
    start_without_pandas()
    mend_split_word(os.environ)
    try:
        with_asked_command(app, sys.argv[1:])()
    except OSError as error:  # of a stream: what commands read and write, they report themselves
        give_up_printing(error)
        sys.exit(EXIT_BAD_INPUT)
    finally:
        ignore_signals()
        if stopped():
            say_no_more()
