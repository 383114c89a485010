"""How a group forgets a topic; the tables are made on real servers."""

from consumer.state.schema import reset


def test_the_reset_is_sql_to_be_run_as_it_stands() -> None:
    where = " WHERE group_id = 'g''' AND topic = 't';"
    assert reset("g'", "t").sql.splitlines() == [
        "DELETE FROM replication_consumer_state" + where,  # noqa: S608 - shown
        "DELETE FROM replication_consumer_snapshot" + where,  # noqa: S608 - shown
        "DELETE FROM replication_consumer_barrier" + where,  # noqa: S608 - shown
    ]
