"""Garbage collection in a process of walstream: rare, since little is garbage.

Modules, their classes and a configuration are created once and stay. With Python's own
threshold the collector looks at them again for each 700 new objects, which takes a
tenth of the start of a command.
"""

import gc
from typing import Final

_COLLECT_AFTER: Final = (
    20_000  # objects: transactions under way are none of the garbage
)


def collect_rarely() -> None:
    """Collect less often from now on; before the bulk of the modules is loaded."""
    gc.set_threshold(_COLLECT_AFTER)


def keep_all() -> None:
    """Take all that exists now for what stays: no collection looks at it again."""
    gc.freeze()
