"""Ids of a sink's schemas: asked without waiting, kept, compared."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from tests.support.runtime import altered
from walstream.config.registry import Registry
from walstream.errors import HistoryError, Restart, WalstreamError
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.avro import AvroEnvelope
from walstream.formats.encodings.protobuf.envelope import ProtoEnvelope
from walstream.formats.encodings.subject import FramedPart, SchemaId, SubjectSchema
from walstream.formats.encodings.wire import head
from walstream.kafka.registry.client import RegisteredText, SubjectVersion
from walstream.kafka.registry.commands import relax
from walstream.kafka.registry.errors import (
    RegistryAway,
    RegistryRefused,
    SchemaIncompatible,
    SchemaUnregistered,
)
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.registry.stored_schema import SCHEMAS
from walstream.op import Kind, ReplicationOp, Table
from walstream.testing.memory import MemoryStore

TOLD = Registry(url="http://me:pw@r:8081")
TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))


class Client:
    """A registry: ids, or errors, by subject."""

    def __init__(self, _told: Registry) -> None:
        self.answers: dict[str, int | WalstreamError] = {}
        self.asked: list[str] = []
        self.texts: list[str] = []  # of versions
        self.registered: list[str] = []
        self.released = threading.Event()
        self.released.set()
        self.heard_at = 0.0
        self.waits = 0
        self.meanings: dict[int, str] = {}
        self.looks = 0  # for meanings
        self.where = "http://r:8081"

    def id_of(self, schema: SubjectSchema) -> int:
        self.waits += 1
        self.released.wait(10)
        self.asked.append(schema.subject)
        self.registered.append(schema.text)
        answer = self.answers.get(schema.subject, 7)
        if isinstance(answer, WalstreamError):
            raise answer
        return answer

    def latest(self, _subject: str) -> str | None:
        return None

    def schema_of(self, number: int, *, anew: bool) -> RegisteredText:
        assert anew
        self.looks += 1
        return RegisteredText("AVRO", self.meanings.get(number, "{}"))

    def lookup(self, schema: SubjectSchema) -> int:
        return self.id_of(schema)

    def versions(self, _subject: str, *, deleted: bool = False) -> list[int]:
        del deleted
        return [*range(1, len(self.texts) + 1)]

    def version(self, _subject: str, number: int) -> SubjectVersion:
        return SubjectVersion(number, "PROTOBUF", self.texts[number - 1])

    def close(self) -> None:
        """Close nothing."""


class Ids:
    """The ids of one sink, over several starts."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clients: list[Client] = []
        self._open: list[SchemaIds] = []
        self.disowned: list[list[int]] = []  # ids that were kept at each

    def start(self, told: Registry = TOLD, sink: str = "kafka") -> SchemaIds:
        def made(given: Registry) -> Any:
            self.clients.append(Client(given))
            return self.clients[-1]

        self._open.append(SchemaIds(sink, told, self.store, self.disown, made))
        return self._open[-1]

    def disown(self) -> None:
        kept = SCHEMAS.read_all(self.store).values()
        self.disowned.append(sorted(one.id for one in kept))

    @property
    def client(self) -> Client:
        return self.clients[-1]

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture
def ids() -> Iterator[Ids]:
    made = Ids()
    yield made
    made.close()


def part(subject: str = "t-value") -> FramedPart:
    writer = AvroEnvelope(TABLE, DebeziumOptions("app", adjust="avro"), SinkTurn())
    return FramedPart(SubjectSchema(subject, writer.schema_text), writer)


def numbered_part(subject: str = "t-value") -> FramedPart:
    writer = ProtoEnvelope(TABLE, DebeziumOptions("app", adjust="avro"), SinkTurn())
    return FramedPart(SubjectSchema(subject, writer.schema_text, "PROTOBUF"), writer)


def until(known: Callable[[], object]) -> None:
    wait_until(known, 10, "it is known")


def test_nothing_waits_for_an_answer(ids: Ids) -> None:
    one, asked = ids.start(), part()
    ids.client.released.clear()
    assert not one.have([asked])
    assert one.outage is None  # it may come yet
    ids.client.released.set()
    until(lambda: one.have([asked]))
    assert asked.writer.head == head(7)
    assert one.of([asked]) == {asked.schema.digest: SchemaId(7)}


def test_what_is_known_is_not_asked_again_within_a_stream(ids: Ids) -> None:
    one = ids.start()
    until(lambda: one.have([part()]))
    other = part()
    assert one.have([other])
    assert other.writer.head == head(7)
    assert ids.client.asked == ["t-value"]


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (RegistryAway("away"), False),
        (SchemaUnregistered("not there"), False),
        (RegistryRefused("not you"), True),
    ],
)
def test_who_does_not_answer_is_asked_again_and_told(
    ids: Ids, error: WalstreamError, *, refused: bool
) -> None:
    one, asked = ids.start(), part()
    ids.client.answers["t-value"] = error
    until(lambda: one.have([asked]) or one.outage)
    assert one.outage is not None
    assert one.outage.why == error.args[0]
    assert one.outage.refused is refused
    ids.client.answers.clear()
    until(lambda: one.have([asked]))
    assert one.outage is None


@pytest.mark.parametrize("error", [RegistryAway("away"), RegistryRefused("not you")])
def test_what_was_registered_needs_no_registry(ids: Ids, error: WalstreamError) -> None:
    one = ids.start()
    until(lambda: one.have([part()]))
    again, known, new = ids.start(), part(), part("u-value")
    ids.client.answers = {"t-value": error, "u-value": error}
    until(lambda: again.have([known]))
    assert known.writer.head == head(7)
    assert again.outage is None  # nothing waits
    until(lambda: again.have([known, new]) or again.outage)
    assert not again.have([known, new])


def test_ids_are_of_one_registry_and_one_sink(ids: Ids) -> None:
    one = ids.start()
    until(lambda: one.have([part()]))
    for told, sink in ((Registry(url="http://other:8081"), "kafka"), (TOLD, "two")):
        other = ids.start(told, sink)
        ids.client.answers["t-value"] = RegistryAway("away")
        until(lambda: other.have([part()]) or other.outage)  # noqa: B023 - called here
        assert other.outage is not None
    assert "pw" not in str(SCHEMAS.read_all(ids.store))


def test_a_registry_that_answers_is_believed(ids: Ids) -> None:
    """It was replaced: its id, not the one that is kept, is of this schema."""
    one = ids.start()
    until(lambda: one.have([part()]))
    again, asked = ids.start(), part()
    ids.client.answers["t-value"] = 9
    with pytest.raises(Restart, match="t-value"):
        until(lambda: again.have([asked]))
    assert asked.writer.head == b""  # nothing was sent by the other one
    assert ids.disowned == [[7]]  # before the other one is kept
    third, asked = ids.start(), part()
    ids.client.answers["t-value"] = RegistryAway("away")
    until(lambda: third.have([asked]))
    assert asked.writer.head == head(9)


def test_a_registry_that_was_replaced_begins_the_stream_again_once(ids: Ids) -> None:
    one, many = ids.start(), [part(f"{name}-value") for name in "tuvw"]
    until(lambda: one.have(many))
    again = ids.start()
    ids.client.answers = {f"{name}-value": 9 for name in "tuvw"}
    with pytest.raises(Restart):
        until(lambda: again.have(many[:1]))
    third = ids.start()
    ids.client.answers = dict.fromkeys(("t-value", "u-value"), 9)
    ids.client.answers["v-value"] = RegistryAway("away")
    until(lambda: third.have(many[:2]))
    assert [one.writer.head for one in many[:2]] == [head(9)] * 2
    until(lambda: third.have(many[2:3]))  # by the id that is kept: it counts again
    fourth = ids.start()
    ids.client.answers["v-value"] = 9
    with pytest.raises(Restart, match="v-value"):
        until(lambda: fourth.have(many[2:3]))
    assert len(ids.disowned) == 2


def test_a_kept_id_that_is_wrong_begins_the_stream_again(
    ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.kafka.registry.schema_ids._LOOK_AGAIN_S", 0.01)
    one = ids.start()
    until(lambda: one.have([part()]))
    again, asked = ids.start(), part()
    ids.client.answers["t-value"] = RegistryAway("away")
    until(lambda: again.have([asked]))
    again.look()
    ids.client.answers["t-value"] = 9

    def restarts() -> bool:
        try:
            again.look()
        except Restart:
            return True
        return False

    until(restarts)


def test_a_schema_that_is_refused_stops(ids: Ids) -> None:
    one, asked = ids.start(), part()
    ids.client.answers["t-value"] = SchemaIncompatible("refused")
    with pytest.raises(HistoryError, match="refused") as told:
        until(lambda: one.have([asked]))
    assert told.value.repair.command == relax(TOLD, "t-value")


def test_a_schema_that_is_refused_may_go_elsewhere(ids: Ids) -> None:
    one = ids.start(TOLD.model_copy(update={"on_incompatible": "{subject}-2"}))
    asked = part()
    refused = SchemaIncompatible("refused")
    ids.client.answers |= {"t-value": refused, "t-value-2": 8}
    until(lambda: one.have([asked]))
    assert asked.writer.head == head(8)


def test_a_known_schema_that_is_refused_now_is_sent_on(ids: Ids) -> None:
    """A replay writes older rows by it, whatever a subject takes today."""
    one = ids.start()
    until(lambda: one.have([part()]))
    again, asked = ids.start(), part()
    ids.client.answers["t-value"] = SchemaIncompatible("refused")
    until(lambda: again.have([asked]))
    assert asked.writer.head == head(7)


def test_the_log_has_each_reason_once(
    ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and values may wait for reasons of their own, by turns."""
    monkeypatch.setattr("walstream.kafka.registry.schema_ids._AGAIN_S", 0.0)
    one, both = ids.start(), [part("t-value"), part("t-key")]
    ids.client.answers = {
        name: SchemaUnregistered(f"{name} is not there")
        for name in ("t-value", "t-key")
    }
    with capture_logs() as logs:
        # none is being asked: one's refusal would come behind the other's answer, and
        # belong to a new outage
        until(
            lambda: (
                not one.have(both) and len(ids.client.asked) > 10 and not one._asked  # noqa: SLF001
            )
        )
        ids.client.answers = {}
        until(lambda: one.have(both))
    said = [entry["error"] for entry in logs if entry["log_level"] == "warning"]
    assert sorted(said) == ["t-key is not there", "t-value is not there"]


def test_who_waits_is_told_whatever_is_asked_besides(ids: Ids) -> None:
    """A backfill asks for all tables by turns, and the last may be known."""
    one, known, new = ids.start(), part(), part("u-value")
    until(lambda: one.have([known]))
    ids.client.answers = {"u-value": RegistryAway("away")}
    until(lambda: one.have([new]) or one.outage)
    assert one.have([known])
    assert one.outage is not None
    ids.client.answers = {}
    until(lambda: one.have([new]))
    assert one.outage is None


def test_who_hangs_is_told_before_the_question_times_out(
    ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.kafka.registry.schema_ids._SILENT_S", 0.2)
    one, known, new = ids.start(), part(), part("u-value")
    until(lambda: one.have([known]))
    again = ids.start()
    ids.client.released.clear()
    with capture_logs() as logs:
        until(lambda: again.have([known]))  # by the id that is kept
        until(lambda: again.have([new]) or again.outage)
    assert again.outage is not None
    assert "has answered nothing" in again.outage.why
    assert "pw" not in again.outage.why
    assert [entry["event"] for entry in logs] == ["waiting for the schema registry"]
    ids.client.released.set()
    until(lambda: again.have([new]))
    until(lambda: ids.client.asked.count("t-value") > 0)  # it is compared all the same
    assert again.outage is None


def test_who_answers_all_the_time_does_not_hang(
    ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions wait in turn, of a source with thousands of tables."""
    monkeypatch.setattr("walstream.kafka.registry.schema_ids._SILENT_S", 0.2)
    one, asked = ids.start(), part()
    ids.client.released.clear()
    now = [time.monotonic()]
    with altered(monotonic=lambda: now[0]):
        for _ in range(6):
            ids.client.heard_at = now[0]
            now[0] += 0.1
            assert not one.have([asked])
            assert one.outage is None
    ids.client.released.set()
    until(lambda: one.have([asked]))


def test_what_another_worker_learns_meanwhile_is_known(ids: Ids) -> None:
    """A detached sink's own one, whose state is copied when the sink is back."""
    one = ids.start()
    other = Ids()
    theirs = other.start()
    until(lambda: theirs.have([part()]))
    ids.store.write(dict(other.store.tree("schemas")))
    ids.client.answers["t-value"] = RegistryAway("away")
    until(lambda: one.have([part()]))
    other.close()


def test_questions_are_asked_some_at_a_time(ids: Ids) -> None:
    one = ids.start()
    ids.client.released.clear()
    every = [part(f"{number}-value") for number in range(400)]
    assert not one.have(every)
    until(lambda: ids.client.waits == 16)
    ids.client.released.set()
    until(lambda: len(ids.client.asked) == 256)
    time.sleep(0.1)
    assert len(ids.client.asked) == 256  # the others have not come in turn yet
    until(lambda: one.have(every))
    assert len(ids.client.asked) == 400


def test_an_id_that_means_another_schema_begins_the_stream_again(
    ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry was restored beneath the stream."""
    monkeypatch.setattr("walstream.kafka.registry.id_patrol._EVERY_S", 0.0)
    monkeypatch.setattr("walstream.kafka.registry.id_patrol._ROUND_S", 0.01)
    one = ids.start()
    until(lambda: one.have([part()]))
    until(lambda: ids.client.looks > 1)  # by the second one the first is noted
    one.look()
    ids.client.meanings[7] = "another"

    def restarts() -> bool:
        try:
            one.look()
        except Restart as error:
            return "of id 7" in str(error)
        return False

    until(restarts)
    assert ids.disowned == [[7]]
    monkeypatch.undo()
    again, asked = ids.start(), part()
    ids.client.answers["t-value"] = 9
    until(lambda: again.have([asked]))  # it is doubted by now: no other start
    assert asked.writer.head == head(9)


def test_numbers_are_kept_with_the_id(ids: Ids) -> None:
    """A registry that is away gives none, and what a subject has later counts not."""
    one, asked = ids.start(), numbered_part()
    ids.client.texts = [
        "package app.public.t; message Envelope { optional int64 ts_us = 9; }"
    ]
    until(lambda: one.have([asked]))
    (known,) = one.of([asked]).values()
    assert known.number == 7
    assert "optional int64 ts_us = 9;" in known.text
    assert ids.client.registered == [known.text]
    op = ReplicationOp(Kind.INSERT, TABLE, 9, 0, None, ["1", "x"])
    (kept,) = SCHEMAS.read_all(ids.store).values()
    assert kept.text == known.text

    two, again = ids.start(), numbered_part()
    ids.client.answers["t-value"] = RegistryAway("away")
    until(lambda: two.have([again]))
    assert two.of([again]) == one.of([asked])
    assert again.writer.encode(op) == asked.writer.encode(op)  # type: ignore[attr-defined]
    assert again.writer.head == head(7) + b"\0"

    three, other = ids.start(), numbered_part()
    ids.client.texts = [known.text.replace("= 9", "= 19")]
    until(lambda: three.have([other]))
    assert three.of([other]) == one.of([asked])
    assert ids.client.registered == [known.text]


def test_another_subject_gives_numbers_of_its_own(ids: Ids) -> None:
    told = TOLD.model_copy(update={"on_incompatible": "{subject}-2"})
    one, asked = ids.start(told), numbered_part()
    ids.client.answers["t-value"] = SchemaIncompatible("no")
    with capture_logs():
        until(lambda: one.have([asked]))
    assert ids.client.asked[-1] == "t-value-2"
    assert one.of([asked])[asked.schema.digest].text == ids.client.registered[-1]
