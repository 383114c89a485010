"""The transaction consumer: the source's transactions, whole and in order.

What the handler writes for one and the position are one transaction of the
application's own database.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Self

import psycopg
from psycopg.errors import InsufficientPrivilege, InvalidSchemaName

from consumer.decoder import Decoder
from consumer.errors import ConsumerStopped
from consumer.group.assigned_partition import Place
from consumer.group.settings import (
    ClientProperties,
    FirstOffset,
    begin_of,
    consumer_settings,
)
from consumer.group.stop_signals import stopping_at_signals
from consumer.handler import Retry, beginning, finished, isolation_of
from consumer.metrics import Measure, Metrics, unmeasured
from consumer.poison import OnPoison, checked
from consumer.registry import RegistryProperties, registry_of
from consumer.state.batch import Locked, Moved
from consumer.state.connection import refusal
from consumer.state.row_keys import RowKeys, WholeRows
from consumer.state.source import AcceptSource
from consumer.state.topic_guard import TopicGuard
from consumer.whole.application import (
    TransactionApplication,
    TransactionHandler,
    transaction_handler,
)
from consumer.whole.due import Due
from consumer.whole.group_state import GroupRow, GroupState
from consumer.whole.partition_reader import PartitionReader, TopicChoice
from consumer.whole.reader_session import ReaderOptions, ReaderSession
from consumer.whole.target_session import TargetSession, failed
from walstream.errors import ConfigError, PermissionLacking, Transient
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.pipeline.backoff import Backoff
from walstream.telemetry import runtime

_KEEP_S: Final = 1.0  # between notes of how far was read
_LOCKED_S: Final = 0.1
_MEMORY: Final = 64 << 20
_log = logging.getLogger(__name__)


class TransactionConsumer:
    """Hands each transaction of the source to the application, in one of `dsn`.

        with TransactionConsumer(app, dsn, group="g", topics="shop.*",
                                 transactions="shop-transactions",
                                 kafka={"bootstrap.servers": "localhost:9092"}) as one:
            one.run()

    `transactions` is the topic that a sink writes with `txinfo`, in walstream's form. A
    transaction is handled when all of its records in `topics` were read; those in other
    topics are none of its. They come in the order of their commits, one at a time.

    One process reads all partitions. Another one of the same group is of no use while
    it runs: each transaction takes effect in one of them. Of ops that wait, `memory`
    bytes are kept in memory, about, and the rest in a temporary file.

    The state is in tables of the same database, `replication_consumer_transaction*`,
    made on first use in the first schema of the search_path.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        app: TransactionApplication | TransactionHandler,
        dsn: str,
        *,
        group: str,
        topics: Sequence[str] | str,
        transactions: str,
        kafka: ClientProperties,
        memory: int = _MEMORY,
        accept_source: AcceptSource = None,
        whole_rows: WholeRows | None = None,
        unavailable: str = UNAVAILABLE,
        registry: RegistryProperties | None = None,
        on_poison: OnPoison = "stop",
        metrics: Metrics = unmeasured,
    ) -> None:
        """`kafka` takes librdkafka's properties.

        `accept_source` names the source to go on with when the topics' source changed
        (the error that stops the consumer then prints it); True accepts any.
        `whole_rows` is as of IdempotentConsumer. `unavailable` is what stands in
        Debezium's records for an unchanged TOAST value. `registry` is as of
        BasicConsumer.
        """
        if memory < 1:
            raise ValueError("memory must be a number of bytes, 1 or more")
        self.group = group
        self._transactions = transactions
        self._metrics = metrics
        self._handler = transaction_handler(app)
        self._begin = beginning(app)
        self._settings = consumer_settings(group, kafka)
        if begin_of(self._settings) is not FirstOffset.EARLIEST:
            raise ConfigError(
                'kafka["auto.offset.reset"] must be earliest',
                hint="without its first records a transaction is never whole",
            )
        self._state = GroupState(group, transactions)
        keys = RowKeys(whole_rows)
        self._target = TargetSession(
            dsn, self._state, self._handler, keys, isolation_of(app)
        )
        self._registry = registry_of(registry)
        names = [topics] if isinstance(topics, str) else list(topics)
        self._options = ReaderOptions(
            group=group,
            transactions=transactions,
            topics=TopicChoice(names, transactions),
            memory=memory,
            decoder=Decoder(unavailable, self._registry),
            accept_source=accept_source,
            on_poison=checked(on_poison),
            metrics=metrics,
            guard=TopicGuard(self._settings, group, self._state.forget),
            state=self._state,
        )
        self._wish = threading.Event()
        self._at_rest = threading.Event()
        self._at_rest.set()
        self._reading: ReaderSession | None = None
        self._backoff = Backoff(first_s=0.05, longest_s=5.0)
        self._next_keep = 0.0

    def run(self) -> None:
        """Handle transactions until `stop`, SIGTERM or SIGINT (in the main thread)."""
        self._at_rest.clear()
        try:
            with stopping_at_signals(self.stop):
                self._patiently(self._prepare)
                while not self._wish.is_set():
                    self._read()
        finally:
            self._target.close()
            if self._registry is not None:
                self._registry.close()
            self._at_rest.set()

    def stop(self) -> None:
        """Ask `run` to return, from any thread; it finishes what is in hand."""
        self._wish.set()

    def lag(self) -> dict[Place, int]:
        """Return how many records of each partition are not handled yet."""
        reading = self._reading
        return {} if reading is None else reading.lag()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and wait for a `run` in another thread to return."""
        self.stop()
        self._at_rest.wait()

    def _prepare(self) -> None:
        try:
            self._target.make()
        except (InsufficientPrivilege, InvalidSchemaName):
            raise PermissionLacking(
                f"group {self.group} may not create its tables"
                " replication_consumer_transaction*",
                hint="name a schema in the search_path, and let the role create in it"
                " once: GRANT CREATE ON SCHEMA ... TO ...",
            ) from None
        finished("begin_consuming", self._begin())

    def _read(self) -> None:
        """Read from the stored state on, until that is moved or doubted, or a stop."""
        reading: ReaderSession | None = None
        reader = PartitionReader(self._settings)
        try:
            row, reach = self._target.read()
            index_of = self._target.index_of
            reading = ReaderSession(self._options, reader, row, reach, index_of)
            reading.begin()
            self._reading = reading
            while not self._wish.is_set():
                reading.step()
                self._handle_due(reading)
                if reading.is_at_other_source:
                    reading.change(partial(self._target.keep, forget=True))
                self._keep(reading, every_s=_KEEP_S)
            self._keep(reading)
        except (Moved, Locked):
            _log.warning("group %s: reads again where the state is now", self.group)
            self._wait()
        except (Transient, psycopg.Error) as error:
            # what was fetched and not taken in comes again
            self._wait_after(error)
        finally:
            self._reading = None
            if reading is not None:
                reading.close()
            reader.close()

    def _handle_due(self, reading: ReaderSession) -> None:
        while not self._wish.is_set() and (due := reading.next()) is not None:
            now = runtime.monotonic()
            with_places = now >= self._next_keep
            after = reading.after(due, with_places=with_places)
            row = self._handled(due, reading.row, after)
            if row is None:
                return
            reading.done(due, row)
            if with_places:
                self._next_keep = now + _KEEP_S

    def _handled(self, due: Due, before: GroupRow, after: GroupRow) -> GroupRow | None:
        """Handle it, again where that may help; return the new state, None: a stop."""
        while not self._wish.is_set():
            try:
                row = self._target.handle(due, before, after)
            except (Moved, ConsumerStopped):
                raise
            except Locked:
                self._wish.wait(_LOCKED_S)
            except Retry:
                self._metrics(Measure.RETRIED, 1, self._transactions, 0)
                self._wait()
            except Exception as error:  # noqa: BLE001 - anything of theirs
                if not self._target.passes(error):
                    failure = failed(due.whole, error)
                    raise failure from failure.__cause__
                self._wait_after(error)
            else:
                self._backoff.reset()
                return row
        return None

    def _keep(self, reading: ReaderSession, every_s: float = 0.0) -> None:
        """Note how far was read, so that a start reads less again."""
        now = runtime.monotonic()
        if every_s and now < self._next_keep:
            return
        self._next_keep = now + _KEEP_S
        after = reading.after(None, with_places=True)
        if after == reading.row:
            return
        with suppress(psycopg.Error, Locked):
            reading.done(None, self._target.keep(reading.row, after))

    def _patiently(self, action: Callable[[], object]) -> None:
        """Do it; wait while the database is away."""
        while not self._wish.is_set():
            try:
                action()
            except psycopg.Error as error:
                self._wait_after(error)
            else:
                return

    def _wait_after(self, error: BaseException) -> None:
        """Wait a little longer each time; raise an error that stays."""
        if isinstance(error, Transient):
            said = str(error)
        elif not self._target.passes(error):
            raise error
        elif isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            said = refusal(error)
        else:
            # the words of a server may hold a row's value; ours do not
            said = type(error).__name__
        _log.warning("group %s: %s, trying again", self.group, said)
        self._wait()

    def _wait(self) -> None:
        self._wish.wait(self._backoff.next())
