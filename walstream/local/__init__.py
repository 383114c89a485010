"""Throw-away PostgreSQL and Kafka, for the demo and the tests.

with LocalPostgres() as postgres, LocalKafka() as kafka:
    print(postgres.dsn(), kafka.bootstrap)
"""

from walstream.local.kafka import LocalKafka
from walstream.local.postgres import LocalPostgres

__all__ = ["LocalKafka", "LocalPostgres"]
