"""Accepted risks of a configuration, shown at each start and by `status`."""

from collections.abc import Mapping
from typing import Final

RISKS: Final[Mapping[str, str]] = {
    "insecure": "connections are not protected by verified TLS",
    "at_most_once": "records may be lost: the producer's properties allow it",
}
OPEN_CLUSTER: Final = (
    "anyone who reaches the Spark cluster can run code there and read the tasks' data"
)
_SCATTERED: Final = (
    "the records of one row go to several partitions: readers see them in any order"
)


def risks(part: object) -> dict[str, str]:
    """Return what a source or a sink gave up, by the key that says so."""
    found = {key: what for key, what in RISKS.items() if getattr(part, key, False)}
    if getattr(part, "key", "") == "event":
        found["key"] = _SCATTERED
    if getattr(part, "partitioner", "") == "random":
        found["partitioner"] = _SCATTERED
    return found
