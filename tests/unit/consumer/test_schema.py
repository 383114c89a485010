"""How a group forgets a topic; the tables are made on real servers."""

from consumer.schema import reset


def test_the_reset_is_sql_to_be_run_as_it_stands() -> None:
    assert reset("g'", "t").sql.splitlines() == [
        f"DELETE FROM replication_consumer_{name}"
        " WHERE group_id = 'g''' AND topic = 't';"
        for name in ("state", "snapshot", "barrier")
    ]
