"""Topics: what they are, creating the missing ones, noticing that one changed.

Asks brokers in a thread of its own: the streaming loop never waits for an answer.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.config.tls import Confined
from walstream.errors import RETRIED, Transient, WalstreamError
from walstream.kafka import topic_ends
from walstream.kafka.admin_client import admin_client, await_controller, in_parts
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import ConnectionErrors
from walstream.kafka.delivered_tails import DeliveredTails
from walstream.kafka.errors import failure, topics_missing
from walstream.kafka.topic import Topic
from walstream.kafka.topic_creation import (
    CREATED_TIMEOUT_S,
    Creation,
    create_topics,
)
from walstream.kafka.topic_limits import DEFAULT_LIMIT, TopicLimits
from walstream.pipeline.outage import Outage
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, TOPIC

_TIMEOUT_S: Final = 10.0
_ASK_S: Final = 3.0
_AGAIN_S: Final = 3.0  # until a broker has heard what others know already
_DESCRIBED_AT_ONCE: Final = 50  # 40 KB each, while the answers are looked at
_AGAIN: Final = f"{RETRIED}; walstream check says more"
_WAITING: Final = "waiting for Kafka"
_GROWN: Final = (
    "topic has another number of partitions now: keys stay in theirs until walstream "
    "run --accept-partitions"
)

_log = structlog.get_logger()


class Topics:
    """The topics that a sink writes to."""

    def __init__(  # noqa: PLR0913 - what a cluster's topics are found with
        self,
        client: ClientProperties,
        creation: Creation,
        accept: Callable[[Topic], None],
        grown: str = _GROWN,
        *,
        met: Callable[[str], bool] = lambda _topic: False,
        confined: Confined | None = None,
        tails: DeliveredTails | None = None,
    ) -> None:
        """`accept` sees each topic before the first record; it may raise.

        `tails` looks for what they have already; None: everything is sent.

        `grown` is said of one that gets more partitions; "" says nothing. One that was
        `met` by an earlier start is lost where it is missing. Brokers that are
        `confined` to this machine are looked for before they are asked anything.
        """
        self._client = dict(client)
        self._creation = creation
        self._accept = accept
        self._grown = grown
        self._met = met
        self._tails = tails
        self._whereabouts = Whereabouts(client, confined)
        self._located = confined is None
        self._admin: AdminClient | None = None
        self._thread = runtime.thread_pool(1, thread_name_prefix="topics")
        self._known: dict[str, Topic] = {}
        self._asked: dict[frozenset[str], Future[None]] = {}
        self._retry_at = 0.0
        self._closed = runtime.event()
        self._told: set[str] = set()
        self._login_refused: KafkaError | None = None
        self._why: Outage | None = None  # where no client said more
        self._hearing = ConnectionErrors(CertificateProbe(client), self._heard)
        self._limits = TopicLimits(client)

    @property
    def known(self) -> Mapping[str, Topic]:
        return self._known

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest record that known topics take."""
        # a copy in one step: the topics' own thread may add some meanwhile
        known = list(self._known.values())
        limits = [topic.limit for topic in known] or [DEFAULT_LIMIT]
        return min(limits), max(limits)

    @property
    def away(self) -> bool:
        """Return whether the brokers did not answer when they were asked last."""
        return "unreachable" in self._told

    def have(self, names: Iterable[str]) -> bool:
        """Return whether these are known; ask for the others, without waiting.

        Of none: whether a producer may be made, for the brokers are where they may be.
        Raises what makes a topic unusable; a broker that is away is asked again.
        """
        missing = frozenset(names).difference(self._known)
        if not missing and self._located:
            return True
        asked = self._asked.get(missing)
        if asked is None:
            if runtime.monotonic() >= self._retry_at:
                self._asked[missing] = self._thread.submit(self._find, missing)
            return False
        if not asked.done():
            self._listen()
            return False
        del self._asked[missing]
        try:
            asked.result()
        except Transient as error:
            self._tell(str(error.args[0]), error.hint)
            self._retry_at = runtime.monotonic() + 1.0
            return False
        return True

    def _listen(self) -> None:
        """Note at once that no broker can be reached, before the request times out."""
        if self._admin is not None:
            self._admin.poll(0)
            if self._hearing.all_down:
                self._tell("no broker can be reached")

    def _tell(self, what: str, hint: str = "") -> None:
        if "unreachable" not in self._told:
            self._told.add("unreachable")
            self._why = Outage(what, hint or _AGAIN)
            if self._hearing:
                self._heard()
            else:
                told = {ERROR: what, HINT: self._why.hint}
                _log.warning(_WAITING, **self._brokers, **told)

    def _heard(self) -> None:
        """Log what is new of an outage that was told."""
        if self.away:
            self._hearing.log(_WAITING, **self._brokers)

    @property
    def _brokers(self) -> dict[str, str]:
        return {"brokers": str(self._client.get("bootstrap.servers", ""))}

    @property
    def outage(self) -> Outage | None:
        """Reason why brokers do not answer, as far as known; None if they do."""
        if not (self.away or self._asked):
            return None
        return self._hearing.outage or self._why

    def _find(self, names: frozenset[str]) -> None:
        found = self.describe(names)
        if names - found.keys() and not self._creation.allowed:
            found |= self._ask_again(names - found.keys())
        missing = sorted(names - found.keys())
        if missing:
            self._create(missing)
            deadline = runtime.monotonic() + CREATED_TIMEOUT_S
            while names - found.keys():
                if runtime.monotonic() > deadline:
                    listed = ", ".join(missing)
                    raise Transient(f"topics {listed} were created but do not appear")
                runtime.sleep(0.05)
                found = self.describe(names)
        self._hearing.end()
        self._why = None
        for topic in found.values():
            self._accept(topic)
        if self._tails is not None:
            self._tails.look(found.values())
        self._known = {**self._known, **found}
        self._located = True
        if "unreachable" in self._told:
            self._told.discard("unreachable")
            _log.info("Kafka answers")

    def _create(self, names: list[str]) -> None:
        if not self._creation.allowed:
            for name in filter(self._met, names):
                raise self._creation.lost(name, "was deleted")
            raise topics_missing(names)
        create_topics(self._connected(), self._creation, names)

    def _connected(self) -> AdminClient:
        if self._admin is None:
            self._admin = admin_client(self._client, self._hear)
        return self._admin

    def _hear(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own
            self._login_refused = error
        self._hearing.hear(error)

    def _failure(self, error: KafkaError, doing: str) -> WalstreamError:
        """Return the failure: after a refused login the request only times out."""
        self._connected().poll(0)
        return failure(self._login_refused or error, doing)

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        """Describe those of these topics that exist."""
        self._whereabouts.look(_TIMEOUT_S)
        self._connected().poll(0)  # what is heard from here on counts
        self._login_refused = None
        found: dict[str, Topic] = {}
        for part in in_parts(sorted(names), _DESCRIBED_AT_ONCE):
            found |= self._describe_some(part)
        return found

    def _describe_some(self, names: list[str]) -> dict[str, Topic]:
        admin = self._connected()
        asked = admin.describe_topics(
            TopicCollection(names), request_timeout=_TIMEOUT_S
        )
        found = {}
        for name, answer in asked.items():
            try:
                description = await_controller(admin, answer, _TIMEOUT_S + 1)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._failure(error.args[0], f"topic {name!r}") from error
            except TimeoutError as error:
                raise Transient("Kafka does not answer") from error
            found[name] = Topic(
                name,
                identity=str(description.topic_id),
                partitions=len(description.partitions),
                limit=DEFAULT_LIMIT,
            )
        self._limits.read(self._connected(), found)
        return found

    def ask(self) -> Future[None]:
        """Ask whether the brokers answer; the future raises Transient if not."""
        return self._thread.submit(self._ask)

    def _ask(self) -> None:
        # a client that is logged in would not notice that others are refused now
        admin = admin_client(self._client, lambda _: None)
        try:
            admin.describe_cluster(request_timeout=_ASK_S).result(_ASK_S + 1)
        except (KafkaException, TimeoutError) as error:
            raise Transient("Kafka does not answer") from error

    def ends(self, partitions: Mapping[str, int]) -> "Future[dict[str, list[int]]]":
        """Ask where topics of so many partitions end; see `topic_ends`."""
        return self._thread.submit(self._ends, partitions)

    def _ends(self, partitions: Mapping[str, int]) -> dict[str, list[int]]:
        return topic_ends.ends(self._connected(), partitions)

    def narrowed(self, name: str) -> "Future[bool]":
        """Ask whether a known topic takes less than when records were sent to it."""
        return self._thread.submit(self._narrowed, name)

    def _narrowed(self, name: str) -> bool:
        known = self._known[name]
        found = (look([name]).get(name) for look in (self.describe, self._ask_again))
        return any(now and known.has_narrowed(now.limit) for now in found)

    def refresh(self, idle: Collection[str] = ()) -> "Future[set[str]]":
        """Look at the known topics again; the future raises what was lost.

        It gives those of the `idle`, to which nothing was sent lately, that are gone:
        they are forgotten.
        """
        return self._thread.submit(self._refresh, idle)

    def _refresh(self, idle: Collection[str]) -> set[str]:
        known = self._known
        found = self.describe(known)
        gone = {
            name
            for name, before in known.items()
            if name not in found or found[name].identity != before.identity
        }
        if gone:
            found |= self._ask_again(gone)
        forgotten = set()
        for name, before in known.items():
            now = found.get(name)
            if now is None or now.identity != before.identity:
                if name in idle:
                    forgotten.add(name)
                    continue
                what = "was deleted" if now is None else "was deleted and created again"
                raise self._creation.lost(name, what)
            grown = now.partitions != before.partitions
            if grown and self._grown and name not in self._told:
                self._told.add(name)
                _log.warning(
                    self._grown,
                    **{TOPIC: name},
                    before=before.partitions,
                    now=now.partitions,
                )
            if before.limit != now.limit:
                self._end_era(name)
            before.take_in(now)
        self._forget(forgotten)
        return forgotten

    def _end_era(self, name: str) -> None:
        """Leave nothing out by what was sent under another limit."""
        if self._tails is not None:
            self._tails.end(name)

    def disown(self) -> None:
        """Leave nothing out by what they have, now or at a later start."""
        if self._tails is not None:
            self._tails.disown()

    def _ask_again(self, names: Iterable[str]) -> dict[str, Topic]:
        """Ask again about topics that a broker denies: it may not know them yet."""
        self._closed.wait(_AGAIN_S)
        return self.describe(names)

    def _forget(self, names: Collection[str]) -> None:
        if names:
            # another dictionary: the loop may be reading this one
            self._known = {
                name: topic for name, topic in self._known.items() if name not in names
            }
        for name in sorted(names):
            _log.warning(
                "topic was deleted, and nothing was sent to it lately: walstream "
                "forgets it",
                **{TOPIC: name},
            )

    def close(self) -> None:
        self._closed.set()
        self._thread.shutdown(wait=False, cancel_futures=True)
