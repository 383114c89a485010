"""All scenarios by their names."""

from collections.abc import Mapping
from typing import Final

from tests.callsites.backfill import Backfill
from tests.callsites.chain import Relay
from tests.callsites.detach import Detach
from tests.callsites.mirror import Consumer
from tests.callsites.poll import Poll
from tests.callsites.scenario import Scenario
from tests.callsites.streams import FirstStart, Stream

SCENARIOS: Final[Mapping[str, type[Scenario]]] = {
    kind.name: kind
    for kind in (FirstStart, Stream, Detach, Backfill, Relay, Consumer, Poll)
}
