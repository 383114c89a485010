"""Everything that can be known of a PostgreSQL source before it is run.

What would stop `run` is asked with the functions that `run` asks.
"""

from walstream.postgres.checks.context import ConfiguredSource, Inspection
from walstream.postgres.checks.run import inspect

__all__ = ["ConfiguredSource", "Inspection", "inspect"]
