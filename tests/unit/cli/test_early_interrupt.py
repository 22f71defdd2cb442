"""Ctrl-C while the program is still being imported."""

import os
import subprocess
import sys

import pytest

from reconpriv.cli.process.signals import INTERRUPTED

# The process interrupts itself at the very moment at which a module is asked for.
AT_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
AS_MODULE = "import runpy\nrunpy.run_module('reconpriv', run_name='__main__', alter_sys=True)\n"
AS_SCRIPT = "from reconpriv.__main__ import main\nmain()\n"


@pytest.mark.parametrize("start", [AS_MODULE, AS_SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize(
    "module", ["reconpriv.cli", "reconpriv.cli.process.signals", "reconpriv.cli.app"]
)
def test_an_interrupt_during_the_imports_ends_without_a_traceback(module, start):
    command = [sys.executable, "-c", AT_IMPORT + start, module]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stderr == f"interrupted: {INTERRUPTED}\n"


def test_a_library_import_leaves_ctrl_c_alone():
    code = (
        "import signal, reconpriv, reconpriv.cli, reconpriv.cli.app\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
