"""Two transactional sinks of one source that write to one topic: nothing comes twice.

A kill is enough: what one of them has open is in front of what the other committed, and
each start ends its own. A configuration that shows it is refused; what a package's
handler names is not in one.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.simulation import installation
from tests.simulation.checker import Checker, SinkView
from tests.simulation.installation import configuration, installed
from tests.simulation.kafka import Record
from tests.simulation.run import Run
from tests.simulation.schedule import Schedule
from tests.simulation.tables import WalTransaction
from tests.simulation.world import Violation
from walstream.config import topology
from walstream.op import Kind
from walstream.sources.delivery_rules import DeliveryRules

_SEEDS = (26, 28, 29, 101, 102, 148)  # of those that found it


def _to_one_topic(text: str, sink: str, *tables: str) -> str:
    """Return the configuration with some tables of a sink alone, in the topic."""
    named = ", ".join(f'"public.{one}" = {{ name = "a.shared" }}' for one in tables)
    route = f'topic = "{sink}.{{schema}}.{{table}}"'
    assert route in text
    return text.replace(
        route, f'on_truncate = "skip"\ntopic = ""\ntopics = {{ {named} }}'
    )


def _expect(self: SinkView, transaction: WalTransaction) -> None:
    here = self.name == "a"  # it is told of both
    ops = transaction.expected if here else []
    self.lacks.append({(op.seq_id, -1) for op in ops if op.kind is not Kind.TRUNCATE})


def _once(self: Checker, record: Record, name: tuple[int, int], *, same: bool) -> None:
    """Look for repeats alone: two sinks have no common order."""
    del same
    seen = self._seen.setdefault((record.topic, record.partition), {})
    if name in seen:
        raise Violation(f"twice: {record.topic} has {name} again")
    seen[name] = record.value or b""


@pytest.fixture(autouse=True)
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    text = _to_one_topic(vars(installation)["_TOML"], "a", "one")
    text = _to_one_topic(text, "b", "two", "three")
    monkeypatch.setattr(installation, "_TOML", text)
    monkeypatch.setattr(SinkView, "expect", _expect)
    monkeypatch.setattr(Checker, "_in_order", _once)
    monkeypatch.setattr(Checker, "folded", lambda _self: None)
    monkeypatch.setattr(Run, "_consume", lambda _self: None)
    monkeypatch.setattr(topology, "_check_sinks_of_one", lambda _: ())
    configuration.cache_clear()
    with installed():
        yield
    configuration.cache_clear()


def violation(seed: int) -> str:
    """Return what is violated where nothing but kills happens."""
    schedule = Schedule.of(seed)
    assert schedule.kills
    one = Run(
        replace(
            schedule,
            faults=[],
            freezes=[],
            reads=[],
            ddl=[],
            rows=[],
            polls=[],
            instances=[],
            members=[],
            relays=[],
            transactions=[(0.0, "transactional")],
        )
    )
    one.checker.whole = one.whole = False  # nobody folds what two sinks mix
    return one.run().violation


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_another_sink_begins_again_is_not_sent_for_it(seed: int) -> None:
    assert not violation(seed)


def test_it_was_sent_twice_where_a_start_kept_what_may_be_anothers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else these seeds say nothing; newer ones would have to be looked for."""
    monkeypatch.setattr(DeliveryRules, "is_alone", lambda *_: True)
    assert any("twice" in violation(seed) for seed in _SEEDS)
