"""What `positions show` says of a rewind; tests/integration shows the whole."""

from walstream.cli.positions_postgres import reach
from walstream.sources.postgres.stored_state import ReplayWindow


def test_where_nothing_is_kept_it_is_said_what_keeps_some() -> None:
    said = reach(ReplayWindow(0x4444578, 0x4444578, 0))
    assert said.startswith('nothing can be rewound: set retain, e.g. "1GiB"')
    assert "0/4444578" not in said


def test_what_is_kept_is_measured() -> None:
    said = reach(ReplayWindow(0x100, 0x500, 0x400))
    assert said == "a rewind can reach 0/100 to 0/500: 1.0 KiB"
