"""The filter of duplicates in the application's own PostgreSQL."""

import threading

import psycopg

from consumer.dedupe import SeenInPostgres
from consumer.row_message import RowMessage
from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from walstream.formats.row import row_hash


def message(number: int) -> RowMessage:
    data = {"id": number}
    return RowMessage(1.0, "source", "t", data, row_hash(data))


def test_postgres_keeps_marks_with_the_transaction_and_forgets_by_age(
    newest_postgres: PostgresServer,
) -> None:
    with temporary_database(newest_postgres) as database:
        with psycopg.connect(database.dsn) as connection:
            seen = SeenInPostgres(connection)
            connection.commit()
            seen.add(message(1))
            connection.rollback()
            assert message(1) not in seen
            seen.add(message(2), message(3))
            seen.add(message(2))
        with psycopg.connect(database.dsn) as connection:
            seen = SeenInPostgres(connection, max_age_s=3600)
            assert message(2) in seen
            connection.execute(
                "UPDATE replication_consumer_seen"
                " SET seen_at = now() - interval '2 hours' WHERE digest = %s",
                (message(2).digest,),
            )
            assert message(2) not in seen
            assert message(3) in seen
            assert seen.forget() == 1


def test_postgres_forgets_nothing_when_the_clock_is_set(
    newest_postgres: PostgresServer,
) -> None:
    """Instead of the server's clock what it showed is set, the other way."""
    day, passed = 86_400, [0.0]
    set_clock = (
        "UPDATE replication_consumer_seen_time"
        " SET shown = shown - make_interval(days => %s)"
    )
    with (
        temporary_database(newest_postgres) as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        seen = SeenInPostgres(connection, steady=lambda: passed[0])
        seen.add(message(1))
        for days in (8, -17, 30):
            connection.execute(set_clock, (days,))
            assert message(1) in seen
            passed[0] += 61
            seen.add(message(2))
            assert seen.forget() == 0
        connection.execute(set_clock, (30,))
        again = SeenInPostgres(connection, steady=lambda: passed[0])
        assert message(1) in again
        for _ in range(7):
            connection.execute(set_clock, (1,))
            passed[0] += day
            again.add(message(3))
        assert message(1) not in again
        assert again.forget() == 2


def test_of_two_transactions_that_ask_at_once_one_handles_the_message(
    newest_postgres: PostgresServer,
) -> None:
    found: list[bool] = []
    with (
        temporary_database(newest_postgres) as database,
        psycopg.connect(database.dsn) as first,
        psycopg.connect(database.dsn) as second,
    ):
        mine = SeenInPostgres(first)
        first.commit()
        theirs = SeenInPostgres(second)
        second.commit()
        assert message(1) not in mine
        thread = threading.Thread(target=lambda: found.append(message(1) in theirs))
        thread.start()
        wait_until(
            lambda: (
                found
                or database.fetch("SELECT FROM pg_locks WHERE NOT granted LIMIT 1")
            ),
            10,
            "the second asks",
        )
        mine.add(message(1))
        first.commit()
        thread.join(30)
        assert found == [True]
