"""Throw-away servers, for the demo and the tests.

with LocalPostgres() as postgres, LocalKafka() as kafka:
    print(postgres.dsn(), kafka.bootstrap)
"""

from walstream.local.kafka import LocalKafka
from walstream.local.mariadb import LocalMariadb
from walstream.local.postgres import LocalPostgres

__all__ = ["LocalKafka", "LocalMariadb", "LocalPostgres"]
