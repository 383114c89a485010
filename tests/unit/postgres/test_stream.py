"""START_REPLICATION, quoted: it takes no parameters."""

import pytest

from walstream.postgres.stream import start_command


def test_command_names_slot_position_and_publications() -> None:
    assert start_command("s", 0x1_0000_00AB, ["p", "p_insert"]) == (
        'START_REPLICATION SLOT "s" LOGICAL 1/AB'
        " (proto_version '1', publication_names '\"p\",\"p_insert\"')"
    )


@pytest.mark.parametrize(
    ("publication", "quoted"),
    [
        ("plain", '"plain"'),
        ("Mixed Case", '"Mixed Case"'),
        ('a"b', '"a""b"'),
        ("a'b", "\"a''b\""),
        ("a,b", '"a,b"'),
        ("a\\b", '"a\\b"'),
        ("a\nb", '"a\nb"'),
        ("é", '"é"'),
        ("'); DROP TABLE t; --", "\"''); DROP TABLE t; --\""),
    ],
)
def test_hostile_publication_stays_one_name(publication: str, quoted: str) -> None:
    command = start_command("s", 0, [publication])
    assert command.endswith(f"publication_names '{quoted}')")


def test_hostile_slot_stays_one_name() -> None:
    assert 'SLOT "a"" LOGICAL 0/0 --" LOGICAL' in start_command(
        'a" LOGICAL 0/0 --', 0, ["p"]
    )
