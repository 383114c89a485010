"""The verdict is the start table's, in words, with the error that `run` ends with."""

from dataclasses import replace

import pytest

from walstream.config import PostgresSource
from walstream.errors import PermissionLacking, StateDamaged, Transient
from walstream.finding import Severity
from walstream.kafka.last_op import LastOp
from walstream.lsn import Lsn
from walstream.pipeline.ports import Position
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slot_inventory import SlotReader
from walstream.postgres.start_table import StoredState
from walstream.status.positions.model import ServerFacts, StartOutcome, StateFacts
from walstream.status.positions.verdict import StartFacts, remarks, verdict

SERVER = Server(
    system_identifier=7,
    timeline=1,
    database="shop",
    in_recovery=False,
    wal_level="logical",
    encoding="UTF8",
    wal_sender_timeout_ms=60000,
    may_replicate=True,
    flush_lsn=1000,
)
SLOT = Slot("s", "logical", "pgoutput", "shop", None, "reserved", None, 100)
POSITION = Position(500, 7, 1, "shop", "s")
SOURCE = PostgresSource(kind="postgres", dsn="dbname=shop", slot="s", sinks=["kafka"])


def seen(
    stored: StoredState, slot: Slot | None = SLOT, server: Server | None = SERVER
) -> StartFacts:
    return StartFacts("app", SOURCE, stored, slot=slot, server=server)


@pytest.mark.parametrize(
    ("stored", "slot", "outcome", "lsn"),
    [
        (StoredState(), None, StartOutcome.CREATE, None),
        (StoredState(intent=True), SLOT, StartOutcome.ADOPT, 100),
        (StoredState(POSITION), SLOT, StartOutcome.STREAM, 500),
        (StoredState(), SLOT, StartOutcome.STOP, None),
        (StoredState(POSITION), None, StartOutcome.STOP, None),
        (StoredState(replace(POSITION, resume=99)), SLOT, StartOutcome.STOP, None),
        (StoredState(replace(POSITION, resume=1001)), SLOT, StartOutcome.STOP, None),
        (StoredState(POSITION), replace(SLOT, active_pid=4), StartOutcome.WAIT, None),
    ],
)
def test_every_row_has_its_verdict(
    stored: StoredState, slot: Slot | None, outcome: StartOutcome, lsn: int | None
) -> None:
    found = verdict(seen(stored, slot), str)
    assert (found.outcome, found.lsn) == (outcome, lsn)
    stops = outcome in {StartOutcome.STOP, StartOutcome.WAIT}
    assert (found.problem is not None) == stops


def test_a_stop_comes_with_the_command_for_this_very_source() -> None:
    found = verdict(seen(StoredState(POSITION), None), str)
    assert found.text == "run would stop with exit code 3"
    assert found.problem is not None
    assert found.problem.repair.command == "walstream positions reset app"


def test_a_slot_that_ours_reads_is_being_streamed() -> None:
    ours = replace(
        seen(StoredState(POSITION), replace(SLOT, active_pid=4)), process=123
    )
    found = verdict(ours, str)
    assert (found.outcome, found.lsn) == (StartOutcome.STREAMING, 500)
    assert "process 123" in found.text


def test_a_slot_that_others_read_names_them() -> None:
    theirs = seen(StoredState(POSITION), replace(SLOT, active_pid=4))
    theirs.reader = SlotReader(4, "psql", "me", None)
    found = verdict(theirs, str)
    assert found.problem is not None
    assert "pid 4 (psql)" in found.problem.what
    assert "--take-over" in found.problem.why
    assert found.problem.repair.sql == "SELECT pg_terminate_backend(4);"
    assert not found.problem.repair.command


@pytest.mark.parametrize(
    ("problem", "outcome"),
    [
        (Transient("away"), StartOutcome.WAIT),
        (PermissionLacking("no"), StartOutcome.STOP),
        (StateDamaged("torn"), StartOutcome.STOP),
    ],
)
def test_what_could_not_be_looked_at_is_the_verdict(
    problem: Transient | PermissionLacking | StateDamaged, outcome: StartOutcome
) -> None:
    blind = replace(seen(StoredState()), problem=problem)
    found = verdict(blind, str)
    assert found.outcome is outcome
    assert found.problem is not None
    assert found.problem.exit_code == problem.exit_code


def test_a_server_that_run_refuses_is_refused_here() -> None:
    without = seen(StoredState(POSITION), server=replace(SERVER, wal_level="replica"))
    found = verdict(without, str)
    assert found.text == "run would stop with exit code 2"
    assert verdict(seen(StoredState(), server=None), str).outcome is StartOutcome.WAIT


def test_secrets_are_taken_out_of_what_servers_say() -> None:
    blind = replace(
        seen(StoredState()), problem=Transient("pw hunter2", hint="hunter2")
    )
    found = verdict(blind, lambda text: text.replace("hunter2", "***"))
    assert found.problem is not None
    assert (found.problem.what, found.problem.why) == ("pw ***", "***")


MIB = 1 << 20
STATE = StateFacts(resume=1000 * MIB)
SERVER_FACTS = ServerFacts("18.1", 7, 1, "d", flush_lsn=2000 * MIB, kept_from=0)


def codes(lsn: Lsn, state: StateFacts | None, server: ServerFacts | None) -> list[str]:
    last = LastOp(lsn, 0, "t", 0, 0, "")
    return [found.code for found in remarks("app", state, server, last)]


def test_nothing_is_said_of_empty_topics() -> None:
    assert not list(remarks("app", STATE, SERVER_FACTS, None))


@pytest.mark.parametrize(
    ("lsn", "said"),
    [
        (1000 * MIB - 1, []),
        (1000 * MIB, ["topics-beyond-position"]),
        (936 * MIB, []),
        (936 * MIB - 1, ["position-beyond-topics"]),
        (2000 * MIB - 1, ["topics-beyond-position"]),
        (2000 * MIB, ["topics-beyond-position", "topics-beyond-server"]),
    ],
)
def test_what_lies_apart_is_named(lsn: Lsn, said: list[str]) -> None:
    assert codes(lsn, STATE, SERVER_FACTS) == said


def test_while_it_streams_the_position_follows_the_topics() -> None:
    running = replace(STATE, process="7")
    assert codes(1500 * MIB, running, SERVER_FACTS) == []
    assert codes(2000 * MIB, running, SERVER_FACTS) == ["topics-beyond-server"]


def test_what_is_not_known_is_not_compared() -> None:
    assert codes(5000 * MIB, None, None) == []
    assert codes(5000 * MIB, StateFacts(), replace(SERVER_FACTS, flush_lsn=0)) == []


def test_records_that_the_server_never_wrote_are_a_warning() -> None:
    last = LastOp(2000 * MIB, 3, "t", 0, 0, "")
    (found,) = remarks("app", None, SERVER_FACTS, last)
    assert found.severity is Severity.WARNING
    assert "(0/7D000000, 3)" in found.what
