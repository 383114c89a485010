"""Every committed change of a PostgreSQL database, in commit order, into Kafka."""

from importlib.metadata import PackageNotFoundError, version

from walstream.telemetry import build

try:
    __version__ = version("walstream")
except PackageNotFoundError:  # run from a tree that was never installed
    __version__ = "0+unknown"

build.choose()
