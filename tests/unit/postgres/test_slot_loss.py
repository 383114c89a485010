"""Which errors of a stream cost the slot: the repair for that loses changes."""

import pytest

from tests.support.postgres_error import server_error
from walstream.errors import SlotLost, Transient
from walstream.postgres.connection import translate
from walstream.postgres.slot_loss import tells_of_loss

REMOVED = "requested WAL segment 000000010000000000000002 has already been removed"


@pytest.mark.parametrize(
    ("state", "words", "file", "lost"),
    [
        ("58P01", REMOVED, "", True),
        ("58P01", "das angeforderte WAL-Segment 0002", "walsender.c", True),
        ("58P01", "das angeforderte WAL-Segment 0002", "xlogutils.c", True),
        ("58P01", 'could not access file "hstore": No such file', "dfmgr.c", False),
        ("58P01", 'could not open file "base/5/16384"', "md.c", False),
        ("58P01", 'could not open file "pg_replslot/s/xid"', "reorderbuffer.c", False),
        ("42704", 'replication slot "s" does not exist', "", True),
        ("42704", "Replikations-Slot »s« existiert nicht", "slot.c", True),
        ("42704", 'type "t" does not exist', "parse_type.c", False),
        ("55000", 'can no longer get changes from replication slot "s"', "", True),
        ("55000", 'can no longer access replication slot "s"', "slot.c", True),
        ("55000", 'cannot read from logical replication slot "s"', "", True),
        ("55000", "logical decoding requires wal_level >= logical", "logical.c", False),
        ("57P01", "terminating connection", "postgres.c", False),
    ],
)
def test_only_a_slot_or_wal_that_is_gone_is_a_loss(
    state: str, words: str, file: str, lost: bool
) -> None:
    error = server_error(state, words, file)
    assert tells_of_loss(error) is lost
    assert type(translate(error, "streaming")) is (SlotLost if lost else Transient)


def test_a_missing_library_is_named_and_nothing_is_reset() -> None:
    words = 'could not access file "/usr/lib/hstore.so": No such file or directory'
    found = translate(server_error("58P01", words, "dfmgr.c"), "streaming")
    assert str(found) == (
        f"streaming: {words} (58P01)\n"
        "  restore that file on the server; walstream tries again by itself"
    )
    assert not found.repair
