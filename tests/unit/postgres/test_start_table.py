"""The start table of docs/operations.md, row by row."""

from dataclasses import replace

import pytest

from walstream.errors import (
    ConfigError,
    HistoryError,
    SlotLost,
    Transient,
    WalstreamError,
)
from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import Given
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import (
    Decision,
    Step,
    StoredState,
    check_confirmed,
    check_timeline,
    decide,
)

SERVER = Server(
    system_identifier=7,
    timeline=1,
    database="shop",
    in_recovery=False,
    wal_level="logical",
    encoding="UTF8",
    wal_sender_timeout_ms=60_000,
    may_replicate=True,
    flush_lsn=0x500,
)
SLOT = Slot(
    name="walstream",
    kind="logical",
    plugin="pgoutput",
    database="shop",
    active_pid=None,
    wal_status="reserved",
    invalidation=None,
    confirmed_flush_lsn=0x100,
)
POSITION = Position(0x200, 7, 1, "shop", "walstream")

NOTHING = StoredState()
INTENT = StoredState(intent=True)
CREATED = StoredState(intent=True, consistent_point=0x100)
RESUME = StoredState(position=POSITION, intent=True, consistent_point=0x100)
ACTIVE = replace(SLOT, active_pid=42)


def at(resume: int) -> StoredState:
    return StoredState(position=replace(POSITION, resume=resume))


def run(stored: StoredState, slot: Slot | None, *, adopt: bool = False) -> Decision:
    return decide("app", stored, slot, SERVER, adopt=adopt)


@pytest.mark.parametrize("origin", ["8/shop", "7/elsewhere"])
def test_an_intent_of_another_server_is_no_record_of_the_slot(origin: str) -> None:
    intent = StoredState(intent=True, origin=origin)
    with pytest.raises(HistoryError, match="has no record of it"):
        run(intent, SLOT)
    assert run(intent, None) == Decision(Step.CREATE)
    assert run(intent, SLOT, adopt=True).step is Step.ADOPT
    own = StoredState(intent=True, origin="7/shop")
    assert run(own, SLOT).step is Step.ADOPT


@pytest.mark.parametrize(
    ("stored", "slot", "decision"),
    [
        pytest.param(NOTHING, None, Decision(Step.CREATE), id="first start"),
        pytest.param(INTENT, None, Decision(Step.CREATE), id="killed before the slot"),
        pytest.param(
            INTENT, SLOT, Decision(Step.ADOPT, 0x100), id="killed before the position"
        ),
        pytest.param(
            CREATED, SLOT, Decision(Step.ADOPT, 0x100), id="the slot of our intent"
        ),
        pytest.param(INTENT, ACTIVE, Decision(Step.WAIT, 0x100), id="ours, still held"),
        pytest.param(
            RESUME, SLOT, Decision(Step.STREAM, 0x200), id="confirmed below resume"
        ),
        pytest.param(
            at(0x100), SLOT, Decision(Step.STREAM, 0x100), id="confirmed is resume"
        ),
        pytest.param(
            at(0x500), SLOT, Decision(Step.STREAM, 0x500), id="resume is the WAL's end"
        ),
        pytest.param(RESUME, ACTIVE, Decision(Step.WAIT, 0x200), id="in use"),
    ],
)
def test_start_goes_on(
    stored: StoredState, slot: Slot | None, decision: Decision
) -> None:
    assert run(stored, slot) == decision


@pytest.mark.parametrize(
    ("stored", "slot", "kind", "said"),
    [
        pytest.param(
            NOTHING,
            SLOT,
            HistoryError,
            ["has no record of it", "0/100"],
            id="unknown slot",
        ),
        pytest.param(
            NOTHING,
            replace(ACTIVE, reader="pid 7 (x of y at z, since 12:00)"),
            ConfigError,
            [
                "has no record of it",
                "read now by pid 7 (x of y at z, since 12:00)",
                "second",
            ],
            id="unknown and held",
        ),
        pytest.param(CREATED, None, SlotLost, ["0/100", "gone"], id="created, gone"),
        pytest.param(
            RESUME, None, SlotLost, ["gone", "0/200", "0/500"], id="slot gone"
        ),
        # its LSNs come again: a reset begins a new epoch only where that is told
        pytest.param(
            at(0x501), None, HistoryError, ["beyond the server's WAL"], id="restored"
        ),
        pytest.param(
            RESUME,
            replace(SLOT, wal_status="lost"),
            SlotLost,
            ["wal_status lost", "0/200", "0/500"],
            id="wal lost",
        ),
        pytest.param(
            RESUME,
            replace(SLOT, invalidation="conflicting"),
            SlotLost,
            ["conflicting", "0/200"],
            id="conflicting (16)",
        ),
        pytest.param(
            RESUME,
            replace(SLOT, invalidation="idle_timeout"),
            SlotLost,
            ["idle_timeout", "0/200"],
            id="invalidated (17)",
        ),
        pytest.param(
            INTENT,
            replace(SLOT, wal_status="lost"),
            SlotLost,
            ["wal_status lost"],
            id="intent, wal lost",
        ),
        pytest.param(
            at(0xFF),
            SLOT,
            SlotLost,
            ["0/100", "0/FF", "if another instance took over the slot, start that"],
            id="confirmed beyond resume",
        ),
        pytest.param(
            at(0xFF),
            replace(SLOT, active_pid=7),
            SlotLost,
            ["another instance reads it now: pid 7", "leave this one stopped"],
            id="another instance goes on",
        ),
        pytest.param(
            at(0x501), SLOT, HistoryError, ["0/501", "0/500"], id="resume beyond WAL"
        ),
        pytest.param(
            StoredState(position=replace(POSITION, system_identifier=8)),
            SLOT,
            HistoryError,
            ["server 8", "this is 7"],
            id="another system",
        ),
        pytest.param(
            StoredState(position=replace(POSITION, database="other")),
            SLOT,
            HistoryError,
            ["'other'", "'shop'"],
            id="another database",
        ),
        pytest.param(
            StoredState(position=replace(POSITION, slot="other")),
            SLOT,
            HistoryError,
            ["'other'", "'walstream'"],
            id="another slot",
        ),
        pytest.param(
            StoredState(position=POSITION, slot="renamed"),
            None,
            SlotLost,
            ["belongs to the slot 'walstream'", "names 'renamed'", "correct `slot`"],
            id="another slot that is not there",
        ),
    ],
)
def test_start_stops_and_says_how_to_repair(
    stored: StoredState, slot: Slot | None, kind: type[WalstreamError], said: list[str]
) -> None:
    with pytest.raises(kind) as stopped:
        run(stored, slot)
    assert stopped.value.exit_code == kind.exit_code
    assert all(part in str(stopped.value) for part in said)
    assert ("gone" in str(stopped.value)) == ("gone" in said)
    assert stopped.value.repair.command.startswith("walstream ")


@pytest.mark.parametrize("stored", [NOTHING, INTENT, CREATED, RESUME])
@pytest.mark.parametrize(
    ("slot", "said"),
    [
        (replace(SLOT, kind="physical", plugin=None, database=None), "physical slot"),
        (replace(SLOT, plugin="test_decoding"), "'test_decoding', not pgoutput"),
        (replace(SLOT, database="other"), "database 'other'"),
    ],
)
def test_slot_that_is_not_ours_stops_whatever_is_stored(
    stored: StoredState, slot: Slot, said: str
) -> None:
    for adopt in (False, True):
        with pytest.raises(HistoryError, match=said):
            run(stored, slot, adopt=adopt)


@pytest.mark.parametrize("stored", [NOTHING, CREATED, RESUME])
def test_a_slot_that_gives_out_what_is_prepared_stops_with_a_way_out(
    stored: StoredState,
) -> None:
    with pytest.raises(HistoryError, match="two_phase") as caught:
        run(stored, replace(SLOT, two_phase=True), adopt=True)
    assert "another `slot`" in caught.value.repair.then
    assert "walstream (TWO_PHASE false)" in caught.value.repair.then


def test_unknown_slot_is_taken_only_on_demand() -> None:
    assert run(NOTHING, SLOT, adopt=True) == Decision(Step.ADOPT, 0x100)
    assert run(NOTHING, ACTIVE, adopt=True) == Decision(Step.WAIT, 0x100)


def test_adopting_makes_no_gap_pass() -> None:
    with pytest.raises(SlotLost):
        run(at(0xFF), SLOT, adopt=True)
    with pytest.raises(SlotLost):
        run(NOTHING, replace(SLOT, wal_status="lost"), adopt=True)


def test_repair_names_the_source() -> None:
    with pytest.raises(SlotLost) as stopped:
        run(RESUME, None)
    assert stopped.value.repair.command == "walstream positions reset app"


def test_a_slot_that_never_confirmed_anything_is_behind_all() -> None:
    slot = replace(SLOT, confirmed_flush_lsn=None)
    assert run(NOTHING, slot, adopt=True) == Decision(Step.ADOPT, 0)
    assert run(at(0), slot) == Decision(Step.STREAM, 0)
    assert Decision(Step.CREATE).resume == 0


@pytest.mark.parametrize("line", ["x\t0/1\tno number", "7", "comment", "\t"])
def test_a_line_of_the_history_that_is_none_is_passed_over(line: str) -> None:
    position = replace(POSITION, timeline=2, resume=0x400)
    check_timeline("app", position, PROMOTED, f"{line}\n2\t0/400\n")


HISTORY = "1\t0/300\tno recovery target specified\n\n2\t0/400\treason\n"
PROMOTED = replace(SERVER, timeline=3)


@pytest.mark.parametrize(
    ("timeline", "resume"), [(1, 0x2FF), (1, 0x300), (2, 0x300), (2, 0x400)]
)
def test_promotion_at_or_above_the_position_goes_on(timeline: int, resume: int) -> None:
    position = replace(POSITION, timeline=timeline, resume=resume)
    check_timeline("app", position, PROMOTED, HISTORY)


@pytest.mark.parametrize(("timeline", "resume"), [(1, 0x301), (2, 0x401)])
def test_promotion_below_the_position_stops(timeline: int, resume: int) -> None:
    position = replace(POSITION, timeline=timeline, resume=resume)
    with pytest.raises(HistoryError, match="history changed") as stopped:
        check_timeline("app", position, PROMOTED, HISTORY)
    assert stopped.value.repair.command == "walstream positions reset app"


def test_timeline_that_is_not_in_the_history_stops() -> None:
    with pytest.raises(HistoryError, match="timeline 1"):
        check_timeline("app", POSITION, PROMOTED, "")


def test_history_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(WalstreamError, match="is not an LSN"):
        check_timeline("app", POSITION, PROMOTED, "1\tnowhere\t\n")


@pytest.mark.parametrize(
    "given",
    [
        None,
        Given(1, 0x2F0, 0x2F1),
        Given(1, 0x2FF, 0x300),
        Given(2, 0x350, 0x400),
        Given(3, 0x900, 0x1000),  # of the server's own timeline
    ],
)
def test_promotion_behind_all_that_was_sent_goes_on(given: Given | None) -> None:
    check_timeline("app", POSITION, PROMOTED, HISTORY, given)


@pytest.mark.parametrize("given", [Given(1, 0x300, 0x301), Given(2, 0x450, 0x1000)])
def test_promotion_below_what_was_sent_stops(given: Given) -> None:
    with pytest.raises(
        HistoryError, match="readers have changes that this server"
    ) as stopped:
        check_timeline("app", POSITION, PROMOTED, HISTORY, given)
    assert stopped.value.repair.command == "walstream positions reset app"
    assert "--replace" in stopped.value.hint


def test_promotion_below_what_may_have_been_sent_asks_for_a_look() -> None:
    given = Given(1, 0x2F0, 0x301)
    with pytest.raises(HistoryError, match="at least up to 0/2F0") as stopped:
        check_timeline("app", POSITION, PROMOTED, HISTORY, given)
    assert stopped.value.repair.command == "walstream positions show app"
    assert "--accept-timeline" in stopped.value.hint
    check_timeline("app", POSITION, PROMOTED, HISTORY, given.believed())


def test_what_was_sent_on_a_timeline_that_the_server_lacks_stops() -> None:
    with pytest.raises(HistoryError, match="timeline 2, which is not in the history"):
        check_timeline("app", POSITION, PROMOTED, "1\t0/300\n", Given(2, 0x100, 0x101))


def test_a_former_primary_is_waited_out() -> None:
    """A dsn or an address leads there for some seconds after a failover.

    Its WAL may end below the position, and its slot may be gone: both say nothing.
    """
    later = replace(POSITION, timeline=2)
    with pytest.raises(Transient, match="it is a former primary") as found:
        check_timeline("app", later, SERVER, "")
    assert "correct the dsn" in found.value.hint
    with pytest.raises(Transient, match="it is a former primary"):
        check_timeline("app", POSITION, SERVER, "", Given(2, 0x100, 0x101))
    for slot in (SLOT, None):
        for flush in (0x10, SERVER.flush_lsn):
            server = replace(SERVER, flush_lsn=flush)
            with pytest.raises(Transient, match="it is a former primary"):
                decide("app", StoredState(later), slot, server, adopt=False)


def test_a_slot_that_was_read_meanwhile_is_not_streamed_from() -> None:
    check_confirmed("app", POSITION, replace(SLOT, confirmed_flush_lsn=0x200))
    with pytest.raises(SlotLost, match="another client read it") as stopped:
        check_confirmed("app", POSITION, replace(ACTIVE, confirmed_flush_lsn=0x201))
    assert stopped.value.repair.command == "walstream positions reset app"
