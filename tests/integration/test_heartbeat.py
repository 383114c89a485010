"""`heartbeat`: messages that are no ops, without a session that stays."""

from tests.integration.test_check_postgres_rights import made_role
from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import as_json
from walstream.pipeline.pgoutput import LogicalMessage, decode
from walstream.postgres.quoting import name

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY)"
_PEEK = (
    "SELECT data FROM pg_logical_slot_peek_binary_changes('beats_' || %s, NULL, NULL,"
    " 'proto_version', '1', 'publication_names', 'none', 'messages', 'true')"
)
_REVOKE = """
CREATE PUBLICATION walstream FOR ALL TABLES;
DO $$ DECLARE one regprocedure;
BEGIN FOR one IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP
EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one); END LOOP; END $$
"""


def beats(database: Database) -> list[LogicalMessage]:
    """Read what a slot of the test's own was sent."""
    messages = [decode(bytes(data)) for (data,) in database.fetch(_PEEK, database.name)]
    return [one for one in messages if isinstance(one, LogicalMessage)]


def test_an_idle_stream_hears_its_heart_beat(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    database.execute("CREATE PUBLICATION none")
    database.fetch(
        "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')",
        f"beats_{database.name}",
    )
    walstream = runs(database.dsn, source={"heartbeat": "200ms"})
    with walstream:
        wait_until(lambda: len(beats(database)) >= 3, 20, "three heartbeats")
        walstream.streaming_said()

        def lag_is_known() -> bool:  # before the slot was looked at
            told = as_json(walstream.configuration, "status", "status")
            (source,) = told["sources"]
            assert source["ops"] == 0
            return source["lag_s"] is not None

        wait_until(lag_is_known, 30, "its lag is known")
        database.execute("INSERT INTO t DEFAULT VALUES")
        (record,) = reader.count(1)
        assert record.op.seq_id == 0
        assert walstream.terminate() == 0
    found = beats(database)
    assert {(one.prefix, one.content, one.transactional) for one in found} == {
        ("walstream", b"", False)
    }
    loud = [entry for entry in walstream.log if entry["level"] != "info"]
    assert not loud, loud


def test_a_role_that_may_not_is_told_once_what_lets_it(
    database: Database, runs: Runs
) -> None:
    with made_role(database) as role:
        database.execute(_REVOKE)
        database.execute(f"ALTER ROLE {name(role.name)} REPLICATION")
        beat = {"heartbeat": "100ms", "tables": []}
        walstream = runs(role.dsn, source=beat)
        with walstream:
            walstream.until("heartbeats cannot be written")
            (said,) = walstream.said("heartbeats cannot be written")
            assert said["level"] == "warning"
            database.execute(said["repair"])
            walstream.until("heartbeats are written again")
            assert len(walstream.said("heartbeats cannot be written")) == 1
            assert walstream.terminate() == 0
