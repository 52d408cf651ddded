"""Who says in the kernel of a student's copy whether a check has passed, out of reach of most of what answers can do.

It is no fortress: code that is written against this module can forge any result.
"""

import builtins
import hashlib
import sys
from types import ModuleType


def proof(secret: str) -> str:
    """Return what a check says once all of it has passed; no cell has it in its code, which a traceback would show."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Judge:
    """Runs checks in the kernel of a copy, out of the way of what answers may have done to it.

    A check has passed if it says so at its end, with words that are new each time: hiding an error gives no points. Its
    code does not go through IPython, whose transformers could change it. It sees the chapter's names and Python's own
    as they were before the answers, but for those that answers are there to define; functions of modules that the
    chapter has a name for are put back before each check, and nothing traces it.
    """

    def __init__(self) -> None:
        self.names, self.functions, self.left, self.output = {}, {}, {}, None

    def remember(self, namespace: dict) -> None:
        """Note what the chapter has defined since the last check."""
        if not self.functions:
            self.names, self.output = dict(vars(builtins)), sys.stdout
        self.names |= {name: value for name, value in namespace.items() if self.left.get(name, self) is not value}
        for module in [builtins, sys, *(value for value in self.names.values() if isinstance(value, ModuleType))]:
            own = {name: value for name, value in vars(module).items() if callable(value)}
            self.functions.setdefault(module.__name__, (module, own))

    def check(self, namespace: dict, code: str, answers: list[str], secret: str) -> None:
        """Run a check on what is defined, and say at its end that it has passed."""
        for module, own in self.functions.values():
            module.__dict__.update(own)  # Python's own first: until then nothing here may use them
        sys.settrace(None)
        sys.setprofile(None)
        scope = namespace | {name: value for name, value in self.names.items() if name not in answers}
        before = dict(scope)
        try:
            exec(compile(code, "<check>", "exec", optimize=0), scope)  # with its asserts, however Python was started
        finally:
            namespace.update((name, value) for name, value in scope.items() if before.get(name, self) is not value)
            self.left = dict(namespace)
        self.output.write(proof(secret))


JUDGE = Judge()
"""The one that is asked in a kernel."""
