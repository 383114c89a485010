"""Throw-away servers, for the demo and the tests.

with LocalPostgres() as postgres, LocalKafka() as kafka:
    print(postgres.dsn(), kafka.bootstrap)
"""

from walstream.testing.servers.kafka import LocalKafka
from walstream.testing.servers.mariadb import LocalMariadb
from walstream.testing.servers.postgres import LocalPostgres

__all__ = ["LocalKafka", "LocalMariadb", "LocalPostgres"]
