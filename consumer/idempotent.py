"""The idempotent consumer: each op takes effect exactly once.

What the handler writes and the position of its op are one transaction of the
application's own database.
"""

import logging
from collections.abc import Sequence

from psycopg import OperationalError
from psycopg.errors import InsufficientPrivilege, InvalidSchemaName

from consumer.decoder import Decoder
from consumer.group.assigned_partition import AssignedPartition
from consumer.group.member import GroupMember
from consumer.group.settings import (
    ClientProperties,
    begin_of,
    session_timeout_s,
)
from consumer.handler import (
    IdempotentApplication,
    IdempotentBatchApplication,
    IdempotentHandler,
    batch_hooks,
    beginning,
    check_batch,
    check_pipeline,
    finished,
    idempotent_batch_handler,
    idempotent_handler,
    isolation_of,
)
from consumer.metrics import Metrics, unmeasured
from consumer.poison import OnPoison, checked
from consumer.registry import RegistryProperties, registry_of
from consumer.router import IdempotentRouter, IdempotentRoutes, routes_of
from consumer.state.connection import connect, refusal
from consumer.state.connection_pool import Connections
from consumer.state.partition import IdempotentWork, WorkOptions
from consumer.state.row_keys import RowKeys, WholeRows
from consumer.state.schema import Tables, make_tables
from consumer.state.session import SessionOptions
from consumer.state.source import AcceptSource
from consumer.state.topic_guard import TopicGuard
from consumer.state.value_store import ValueStore, make_value_table
from walstream.errors import PermissionLacking
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.pipeline.backoff import Backoff

_log = logging.getLogger(__name__)


class IdempotentConsumer(GroupMember, IdempotentRoutes):
    """Hands each op of the topics to the application with a transaction of `dsn`.

        with IdempotentConsumer(app, dsn, group="g", topics=["orders"],
                                kafka={"bootstrap.servers": "localhost:9092"}) as one:
            one.run()

    Partitions are handled concurrently, by `connections` threads with a session of the
    database each, at most: whichever is free does a partition's next batch. In one
    partition all is in order. Up to `batch` ops of a partition share a transaction, for
    `batch_seconds` at most. A TRUNCATE is handled once, after all that came before it
    in all partitions of its topic and before all that comes after it. An application
    with `handle_batch(tx, ops)` gets all ops of a transaction at once.

    Without an application it has a router: `@one.on("shop.orders", Kind.INSERT)`.

    The state is in tables of the same database, `replication_consumer_*`, made on first
    use in the first schema of the search_path.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        app: IdempotentApplication
        | IdempotentBatchApplication
        | IdempotentHandler
        | None = None,
        dsn: str | None = None,
        *,
        group: str,
        topics: Sequence[str] | str,
        kafka: ClientProperties,
        connections: int = 8,
        batch: int = 200,
        batch_seconds: float = 1.0,
        linger: float = 0.0,
        pipeline: bool = False,
        barrier_timeout: float = 300.0,
        accept_source: AcceptSource = None,
        whole_rows: WholeRows | None = None,
        unavailable: str = UNAVAILABLE,
        registry: RegistryProperties | None = None,
        on_poison: OnPoison = "stop",
        metrics: Metrics = unmeasured,
        stop_timeout: float = 30.0,
    ) -> None:
        """`kafka` takes librdkafka's properties; times are in seconds.

        `accept_source` names the source to go on with when the topics' source changed
        (the error that stops the consumer then prints it); True accepts any. `linger`
        is how long `handle_batch` waits for `batch` ops of a partition. `pipeline`:
        no statement of `handle_message` waits for the one before it. `whole_rows`
        names tables, each with the columns of its key: the values that an UPDATE leaves
        out are kept, and `op.new` has them. `unavailable` is what stands in Debezium's
        records for an unchanged TOAST value. `registry` is as of BasicConsumer.
        """
        check_batch(app, batch, linger)
        check_pipeline(app, pipeline=pipeline)
        if connections < 1:
            raise ValueError("connections must be at least 1")
        super().__init__(
            group=group,
            topics=topics,
            kafka=kafka,
            stop_timeout=stop_timeout,
            threads=connections,
        )
        if dsn is None:
            raise TypeError("dsn= is missing: the database of the transactions")
        app = IdempotentRouter() if app is None else app
        self.routes = routes_of(app)
        self.routes.metrics = metrics
        self._dsn = dsn
        self._keys = RowKeys(whole_rows)
        self._begin = beginning(app)
        self._connections = Connections(dsn, group, isolation_of(app))
        self._registry = registry_of(registry)
        self._options = WorkOptions(
            handler=idempotent_handler(app),
            on_poison=checked(on_poison),
            metrics=metrics,
            batch=batch,
            batch_s=batch_seconds,
            linger_s=linger,
            barrier_s=barrier_timeout,
            session=SessionOptions(
                group=group,
                connections=self._connections,
                guard=TopicGuard(self._settings, group),
                accept_source=accept_source,
                frozen_s=session_timeout_s(self._settings),
                begin=begin_of(self._settings),
            ),
            decoder=Decoder(unavailable, self._registry),
            hooks=batch_hooks(app),
            batch_handler=idempotent_batch_handler(app),
            pipeline=pipeline,
        )

    def _prepare(self) -> None:
        """Make the state's tables, and wait while the database is away."""
        self.routes.require()
        backoff = Backoff(longest_s=5.0)
        while not self._wish.is_set():
            try:
                self._tables = self._make_tables()
                finished("begin_consuming", self._begin())
            except OperationalError as error:
                _log.warning(
                    "the database of group %s cannot be reached, trying again: %s",
                    self.group,
                    refusal(error),
                )
                self._wish.wait(backoff.next())
            else:
                return

    def _release(self) -> None:
        self._connections.close()
        if self._registry is not None:
            self._registry.close()

    def _make_tables(self) -> Tables:
        try:
            with connect(self._dsn, self.group) as connection:
                tables = make_tables(connection)
                if self._keys:
                    self._value_schema = make_value_table(connection)
                return tables
        except (InsufficientPrivilege, InvalidSchemaName):
            raise PermissionLacking(
                f"group {self.group} may not create its tables replication_consumer_*",
                hint="name a schema in the search_path, and let the role create in it"
                " once: GRANT CREATE ON SCHEMA ... TO ...",
            ) from None

    def _work(self, lane: AssignedPartition) -> IdempotentWork:
        values = None
        if self._keys:
            values = ValueStore(self.group, lane.place, self._keys, self._value_schema)
        return IdempotentWork(lane, self._options, self._tables, values)
