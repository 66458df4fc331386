"""Run the Python blocks of a page as one program."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def snippets(text):
    """The Python blocks of a page, each with the number of lines before it."""
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, block.start(1)), block[1]


def run(text, name):
    """Run the snippets of a page one after the other, as one program; those with >>> must print what they say.

    It returns what they defined.
    """
    namespace = {"__name__": "__main__"}
    for line, code in snippets(text):
        if code.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(code, namespace, name, name, line)
            report = []
            failed, _ = doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
            namespace = test.globs
            if failed:
                raise AssertionError("".join(report))
        else:
            exec(compile("\n" * line + code, name, "exec"), namespace)
    return namespace
