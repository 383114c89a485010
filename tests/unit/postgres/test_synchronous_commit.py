"""Who is named in synchronous_standby_names, as syncrep_gram.y reads it."""

import pytest

from walstream.errors import ConfigError
from walstream.postgres.synchronous_commit import holds_commits, refusal


@pytest.mark.parametrize(
    ("setting", "holds"),
    [
        ("", False),
        ("*", True),
        ('"*"', True),
        ("walstream", True),
        ("WalStream", True),  # names are compared without case
        ('"walstream"', True),
        ("node1, walstream", True),
        ("node1,node2", False),
        ("walstream2", False),
        ("FIRST 1 (node1, *)", True),  # as soon as node1 is gone
        ("first 2 (node1, walstream)", True),
        ("ANY 1 (node1,node2)", False),
        ("ANY 2(node1 , walstream )", True),
        ("2 (node1, node2)", False),
        ('ANY 1 ("a ( b", "wal""stream")', False),
        ("ANY 1 (\n  node1,\n  walstream)", True),
    ],
)
def test_a_name_is_found_wherever_it_may_stand(setting: str, holds: bool) -> None:
    assert holds_commits(setting, "walstream") is holds


def test_another_application_name_is_another_standby() -> None:
    assert holds_commits("FIRST 1 (cdc)", "CDC")
    assert holds_commits('ANY 1 ("wal""stream")', 'wal"stream')
    # a list that is no method's: these are standbys
    assert holds_commits("first, any", "any")


def test_the_refusal_names_the_setting_and_two_ways_out() -> None:
    error = refusal("ANY 1 (*)", "walstream")
    assert isinstance(error, ConfigError)
    assert "ANY 1 (*)" in str(error)
    assert "allow_synchronous" in error.hint
    assert "application_name" in error.repair.then
