"""Topics of a source whose records a stream may leave out."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import structlog

from walstream.config import Config, KafkaSinkConfig
from walstream.kafka import delivery_era
from walstream.kafka.delivered_tails import DeliveredTails, StreamStart
from walstream.kafka.delivery_era import ERAS
from walstream.kafka.producer_config import transaction_timeout_ms
from walstream.kafka.replay_mark import (
    REPLAY,
    REPLAYS,
    ReplayMark,
    joined,
    replay_entry,
)
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.kafka.transaction_position import DeliveredTransactions, HistoryPlace
from walstream.lsn import Lsn, show
from walstream.pipeline.ports import NamedSink, StateStore
from walstream.sources.delivery_rules import DeliveryRules
from walstream.telemetry.fields import SINK
from walstream.telemetry.meter import SinkMeter

_log = structlog.get_logger()


def transactional_ids(slot: str, sink: str, header: bytes) -> tuple[str, str]:
    """Name a sink's transactions: in its source's stream, and while it is detached.

    Two servers may have slots of one name.
    """
    server = header.partition(b"/")[0].decode()
    return f"{slot}-{server}-{sink}-stream", f"{slot}-{server}-{sink}-detached"


class DeliveredTopics:
    """Those of one source's sinks, for one stream."""

    def __init__(self, config: Config, source: str, positions: StateStore) -> None:
        self.start: StreamStart | None = None  # None: no stream is to begin
        self._positions = positions
        self._looks: list[DeliveredTails] = []
        self._transactions: list[DeliveredTransactions] = []
        self.detached = False  # does a detached sink's own worker send?
        self.replay: ReplayMark | None = None  # of another state folder
        self._config = config
        self._source = source
        self._sinks = config.sinks
        self._own = config.sources[source].sinks
        self._rules = DeliveryRules(config, source)

    def begin(self, start: StreamStart) -> None:
        """Note where a stream begins; end the eras of sinks that it does not have.

        Others may write to their topics meanwhile.
        """
        self.start = start
        sinks = {name.partition("/")[0] for name in ERAS.keys(self._positions)}
        for sink in sinks.difference(self._own):
            self._end(sink)

    def of(self, sink: str, header: bytes, *, joins: bool) -> DeliveredTails | None:
        """Make what looks for the records that Kafka has; None: all are sent.

        `header` says of which history they are. What a sink is sent that `joins` others
        was never sent before.
        """
        start = self.start
        config = self._sinks[sink]
        if start is None or not isinstance(config, KafkaSinkConfig):
            return None
        if joins:
            start = replace(start, repeats=False)
        if config.is_transactional:
            self._end(sink)  # what counts is the position in Kafka
            return None
        if why := self._rules.why_again(sink):
            self._end(sink)
            if start.repeats:
                _log.info(
                    f"what Kafka has beyond the position may come again: {why}",
                    **{SINK: sink},
                    begins=show(start.resume),
                )
            return None
        topics = self._rules.topics(sink, header)
        look = DeliveredTails(topics, self._positions, start)
        self._looks.append(look)
        return look

    def transactions(
        self, sink: str, header: bytes, meter: SinkMeter, *, joins: bool
    ) -> DeliveredTransactions | None:
        """Make what leaves out the ops of transactions that Kafka has; None: nothing.

        A sink that `joins` was sent nothing of what comes, and its own worker may still
        be alive.
        """
        config = self._sinks[sink]
        if not isinstance(config, KafkaSinkConfig) or not config.is_transactional:
            return None
        start = self.start or StreamStart(0, 0, repeats=False, creates=True)
        slot = self._config.postgres_source(self._source).slot
        one, other = transactional_ids(slot, sink, header)
        own, other = (other, one) if self.detached else (one, other)
        plan = TransactionPlan(
            own,
            () if joins else (other,),
            config.positions_topic_of(self._source),
            config.commit_interval,
            transaction_timeout_ms(config.producer),
            shared=one,  # who takes over knows what the other one committed
        )
        stored = self._positions
        replay = joined(
            REPLAY.read(stored) or self.replay, REPLAYS.of(sink).read(stored)
        )
        place = HistoryPlace(
            header.decode(),
            start.resume,
            start.flush,
            # of a clean stop's, too: the state folder may be an older copy
            repeats=not (start.creates or joins),
            replay=replay,
        )
        made = DeliveredTransactions(
            sink,
            plan,
            place,
            meter,
            lambda: self._positions.write(replay_entry(sink)),
        )
        made.is_alone = partial(self._rules.is_alone, sink)
        made.until = start.until
        self._transactions.append(made)
        return made

    def _end(self, sink: str) -> None:
        """End a sink's eras: what it sends now, it sends by rules of no era.

        Else its records counted where the configuration is that of before again.
        """
        over = delivery_era.ended(self._positions, sink)
        if over:
            self._positions.write(over)

    def end_at(self, sinks: Iterable[NamedSink], until: Lsn) -> None:
        """Leave out nothing by what was sent from this LSN on: the stream ends there.

        With NEVER it ends nowhere, and what is found from then on counts.
        """
        for look in self._looks:
            look.until = until
        for one in self._transactions:
            one.until = until
        for sink in sinks:
            for topic in sink.topics.values():
                topic.end_tails(until)
