"""What a walk changes in walstream's processes, by a `sitecustomize` of its own.

The product gets no switch for tests: the watch looks each second instead of every 10 s,
since a walk would wait for it else. A hole is a mend that is taken out again, by which
the walk shows that it would find its like.
"""

from typing import Final

WATCH_S: Final = 1.0

_HASTE: Final = f"""
assert "_WATCH_EVERY_S" in globals(), "where is the watch?"
_WATCH_EVERY_S = {WATCH_S}
"""
# by name: what is run at the end of which module
HOLES: Final = {
    # contents of publications are compared, and not the rows they are made of
    "marks": (
        "walstream.postgres.continuity",
        """
def compare(then, now, left):
    found = Difference(left=frozenset(left), lost=next(_lost(then, now), ""))
    found.came = _named(now) - _named(then)
    found.gone = _named(then) - _published(now) - _partitions(now)
    return found
""",
    ),
    # a partition that was out for a while is as good as one that never was
    "ties": (
        "walstream.postgres.continuity",
        """
def _leaves(then, now, found):
    pass
""",
    ),
    # old rows of leaves are taken for what the root's identity says
    "blind": (
        "walstream.pipeline.old_row",
        """
Leaves.blind = lambda self, relation, needed, key: iter(())
""",
    ),
    # so are their nulls
    "nulls": (
        "walstream.pipeline.old_row",
        """
Leaves.whole = lambda self, oid: True
""",
    ),
    # a key counts from the transaction that described the table anew
    "behind": (
        "walstream.postgres.table_keys",
        """
from dataclasses import replace as _replace
def _hastily(self, relation, looked, place, meet=KeyBook.meet):
    meet(self, relation, _replace(looked, after=place[0] + bool(place[1])), place)
KeyBook.meet = _hastily
""",
    ),
    # a root goes by what this connection was told
    "roots": (
        "walstream.pipeline.root_key",
        """
RootKeys.at = lambda self, place: None
RootKeys.lacks = lambda self, key: False
""",
    ),
    # columns of a row that is read go by the names that they had
    "names": (
        "walstream.postgres.toast",
        """
def names_now(then, attributes, *, in_part=False):
    return {name: name if name in attributes else None for name in then}
""",
    ),
}
_TEXT: Final = """
import importlib.abc, importlib.util, sys

patches = {patches!r}

class Patching(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in patches:
            return None
        code = patches.pop(name)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def patched(module):
            run(module)
            exec(code, module.__dict__)
        spec.loader.exec_module = patched
        return spec

sys.meta_path.insert(0, Patching())
"""


def sitecustomize(hole: str = "") -> str:
    """Write it, with a mend taken out."""
    patches = {"walstream.postgres.companion": _HASTE}
    if hole:
        module, code = HOLES[hole]
        patches[module] = code
    return _TEXT.format(patches=patches)
