"""Positions of a source, from LMDB, the slot, the server and the topics.

Only looks, whether an instance runs or not. What cannot be asked is left out, and said;
the verdict is what `run` would do, by the start table.
"""

from walstream.status.positions.audit import audit
from walstream.status.positions.model import Standing, Standings, StartOutcome
from walstream.status.positions.postgres import look

__all__ = ["Standing", "Standings", "StartOutcome", "audit", "look"]
