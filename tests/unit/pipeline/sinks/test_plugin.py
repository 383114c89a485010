"""A sink that a package adds: it has a name, and says what it lacks."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.pipeline.sinks.test_handler import TABLE, Target
from walstream import plugins
from walstream.errors import ConfigError, HistoryError, Transient, WalstreamError
from walstream.op import Kind, ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.sinks import plugin
from walstream.pipeline.sinks.plugin import PackagedSink
from walstream.records.producer_record import ProducerRecord
from walstream.testing import Reject, faulty

OP = ReplicationOp(Kind.INSERT, TABLE, 8, 0, new=["1", "a"])


def make(name: str, options: Mapping[str, Any]) -> Target:
    assert name == "mine"
    if "refused" in options:
        raise ConfigError("no such file")
    options["path"]
    return Target()


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda *_: make)


def test_it_has_what_every_sink_has() -> None:
    sink = plugin.make("mine", "file", {"path": "x"})
    transaction = Transaction(8)
    assert (sink.name, sink.waiting, sink.topics, sink.in_flight) == (
        "mine",
        False,
        {},
        0,
    )
    assert sink.ready()
    assert sink.knows(TABLE)
    assert not sink.send(OP, transaction)
    assert transaction.undelivered == 1
    assert not sink.tally
    sink.close()


def test_what_cannot_be_made_is_named() -> None:
    with pytest.raises(ConfigError, match=r"sinks\.mine: .*KeyError"):
        plugin.make("mine", "file", {})
    with pytest.raises(ConfigError, match="no such file"):
        plugin.make("mine", "file", {"refused": True})


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (OSError(28, "No space left on device"), Transient),
        (KeyError("a value"), HistoryError),
        (ConfigError("as it says"), ConfigError),
    ],
)
def test_its_failures_are_its_own(
    raised: Exception, expected: type[WalstreamError]
) -> None:
    target = faulty(Target(), send=[Reject(raised)])
    with pytest.raises(expected) as caught:
        PackagedSink("mine", target).send(OP, Transaction(8))
    assert "a value" not in str(caught.value)


def test_finished_records_are_not_for_it() -> None:
    with pytest.raises(ConfigError, match="takes only ops"):
        PackagedSink("mine", Target()).put(
            ProducerRecord(b"k", b"v"), OP, Transaction(8)
        )
