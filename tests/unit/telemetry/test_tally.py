"""Counts of what went another way: over streams and runs, and none twice."""

import pickle
from types import SimpleNamespace

from walstream.telemetry.tally import Tallies, Tally, TallyTotals, totals


def tally(**counts: int) -> Tally:
    made = Tally()
    for kind, count in counts.items():
        getattr(made, kind)["public.t"] = count
    return made


def sink(found: Tally) -> SimpleNamespace:
    return SimpleNamespace(name="kafka", tally=found)


def test_a_document_is_read_as_it_was_written() -> None:
    made = tally(dropped=1, parked=2)
    assert made.document() == {"public.t": {"dropped": 1, "parked": 2}}
    assert Tally.of(made.document()) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own
    assert made
    assert not Tally()


def test_a_sink_that_is_followed_twice_counts_once() -> None:
    tallies, one = Tallies(), tally(skipped=1)
    tallies.follow([sink(one)])
    tallies.follow([sink(one)])
    one.skipped["public.t"] += 1
    assert tallies.totals("kafka").skipped == 2


def test_what_earlier_streams_and_tasks_did_stays() -> None:
    tallies = Tallies({"kafka": {"public.t": {"parked": 5}}})
    tallies.follow([sink(tally(parked=1))])
    tallies.follow([sink(tally(parked=2, failed=1))])
    tallies.add("kafka", tally(parked=10))
    assert tallies.totals("kafka") == TallyTotals(
        skipped=0,
        failed=1,
        parked=18,
        tables={"public.t": {"failed": 1, "parked": 18}},
        parked_now=13,  # of this run
    )
    assert Tallies(tallies.kept()).totals("kafka").parked_now == 0


def test_of_a_sink_without_any_nothing_is_kept() -> None:
    tallies = Tallies()
    tallies.follow([sink(Tally())])
    assert tallies.kept() == {}
    assert tallies.totals("other").tables == {}
    assert totals({"public.t": {"skipped": 3}}).skipped == 3


def test_what_this_process_dropped_begins_with_nothing() -> None:
    tallies = Tallies({"kafka": {"public.t": {"dropped": 5}}})
    assert tallies.dropped("kafka") == {}
    tallies.follow([sink(tally(dropped=1))])
    assert tallies.dropped("kafka") == {"public.t": 1}
