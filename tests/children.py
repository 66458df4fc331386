"""Python processes that tests start, signal and end."""

import contextlib
import subprocess
import sys
import textwrap

#: Seconds until a test gives up on a child that hangs. Far more than a child needs on a loaded machine.
TIMEOUT = 600


@contextlib.contextmanager
def python_child(program, *words, **streams):
    """Start a program in a process of its own; kill it when the test leaves, however the test ends.

    A program that is to be interrupted must first call what it is to be interrupted in. Modules are imported
    at the first call, and CPython drops a KeyboardInterrupt that arrives in a callback of the import system.
    """
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, words)]
    with subprocess.Popen(command, **streams) as child:
        try:
            yield child
        finally:
            child.kill()  # does nothing to a child that has ended
