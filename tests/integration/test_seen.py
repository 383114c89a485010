"""The filter of duplicates in the application's own PostgreSQL."""

import psycopg

from consumer.message import RowMessage, row_hash
from consumer.seen import SeenInPostgres
from tests.fix_postgres import PostgresServer, temporary_database


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
