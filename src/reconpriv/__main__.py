"""The entry point of ``python -m reconpriv`` and of the ``reconpriv`` script."""

import os
import signal


def _end(*_: object) -> None:
    os.write(2, b"interrupted: nothing unfinished was left behind.\n")
    os._exit(128 + signal.SIGINT)


# Before anything else is imported, where Ctrl-C would print a traceback. The command line puts its
# own handler, which says the same, in this one's place.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)

from reconpriv.cli import main  # noqa: E402 - see above

if __name__ == "__main__":
    main()
