"""`python -m walstream.worker_main`: a worker's process, and what it loads first."""

from importlib import import_module

from walstream.lean import load_structlog

if __name__ == "__main__":
    load_structlog()
    import_module("walstream.worker").process()
