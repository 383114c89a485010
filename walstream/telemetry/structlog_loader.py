"""Loading of structlog without rich, in the processes of walstream.

structlog takes rich for tracebacks where it finds it: 5 MB of each process and some of
its start, for what walstream's logs never print. A program that imports walstream keeps
what it has.
"""

import sys
from importlib import import_module


def load_structlog() -> None:
    """Load it before any other module does; rich can still be imported."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # there is none, it means
    try:
        import_module("structlog")
    finally:
        del sys.modules["rich"]
