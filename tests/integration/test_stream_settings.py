"""Settings of a database that would end a stream, each time at the same place."""

from contextlib import closing

from psycopg.conninfo import make_conninfo

from tests.support.fixtures.postgres import Database
from walstream.postgres import server
from walstream.postgres.connection import connect

_SINCE = 170000


def test_a_stream_may_be_in_a_transaction_for_as_long_as_it_takes(
    database: Database,
) -> None:
    """A walsender is in one while it decodes one, and waits in it for its reader."""
    with closing(connect(database.dsn)) as plain:
        has_timeout = plain.info.server_version >= _SINCE
    if has_timeout:
        name = database.name
        database.execute(f"ALTER DATABASE {name} SET transaction_timeout = '9s'")
    with closing(connect(database.dsn, replication=True)) as stream:
        query = "SELECT setting FROM pg_settings WHERE name = 'transaction_timeout'"
        found = stream.execute(query).fetchall()
    assert found == ([("0",)] if has_timeout else [])


def test_a_login_that_acts_as_another_role_may_replicate(database: Database) -> None:
    """As Vault's do: the walsender asks for the right of who logs in."""
    login, owner = f"login_{database.name}", f"owner_{database.name}"
    database.execute(
        f"CREATE ROLE {owner}; CREATE ROLE {login} LOGIN REPLICATION IN ROLE {owner};"
        f"ALTER ROLE {login} SET role = {owner}"
    )
    try:
        with closing(connect(make_conninfo(database.dsn, user=login))) as plain:
            found = server.look(plain)
        assert (found.role, found.may_replicate) == (owner, True)
        database.execute(f"ALTER ROLE {login} NOREPLICATION")
        with closing(connect(make_conninfo(database.dsn, user=login))) as plain:
            assert not server.look(plain).may_replicate
    finally:
        database.execute(f"DROP ROLE {login}; DROP ROLE {owner}")
