"""`python -m walstream.worker_main`: a worker's process, and what it loads first."""

import os
import sys
from importlib import import_module

from walstream.lean import load_structlog

if __name__ == "__main__":
    load_structlog()
    code = import_module("walstream.worker").main()
    sys.stderr.flush()
    # threads may still wait for servers that are away: nothing of theirs matters
    os._exit(code)
