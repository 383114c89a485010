"""All scenarios by their names."""

from collections.abc import Mapping
from typing import Final

from tests.callsites.others import Backfill, Consumer, Detach, Poll, Relay
from tests.callsites.scenario import Scenario
from tests.callsites.streams import FirstStart, Stream

SCENARIOS: Final[Mapping[str, type[Scenario]]] = {
    kind.name: kind
    for kind in (FirstStart, Stream, Detach, Backfill, Relay, Consumer, Poll)
}
