"""`python -m walstream.service.worker_main`: a worker's process."""

from importlib import import_module

from walstream.telemetry.garbage import collect_rarely
from walstream.telemetry.structlog_loader import load_structlog

if __name__ == "__main__":
    collect_rarely()
    load_structlog()
    import_module("walstream.service.worker").process()
