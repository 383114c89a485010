"""Records the facts of columns at each Relation message of frames.json.gz.

`python -m tests.data.debezium.record` runs schema.sql and workload.sql on PostgreSQL
18, statement by statement, asks the catalog behind each, and writes facts.json. The
messages have to be those of the frames, whose records are in golden.json.gz.

The frames and the golden records are of one run with a Debezium 3.5.0.Final: PostgreSQL
18, Kafka Connect with JSON converters and schemas, a slot for each connector, made
between the two scripts; a publication FOR ALL TABLES WITH
(publish_via_partition_root = true), snapshot.mode=no_data. A fifth slot was read by
pg_logical_slot_get_binary_changes with proto_version 1 and messages: frames.json.gz, as
[lsn, xid, payload in hex]. golden.json.gz has [key, value, headers] of each record by
topic; of the heartbeats two. The connectors, by the prefix of their topics:

dbz: provide.transaction.metadata=true, skipped.operations=none
dstr: decimal string, time connect, interval string, hstore map, binary base64,
  skipped.operations=none, include.unknown.datatypes=true
ddbl: decimal double, time isostring, binary hex, include.unknown.datatypes=true,
  schema.name.adjustment.mode=avro
dus: time adaptive_time_microseconds, binary base64-url-safe

goldavro.json.gz has [key, value] of each record by topic, in base64, of another run of
the same scripts, by Apicurio's Avro converter 2.6.13.Final (as-confluent,
use-id=contentId) and otherwise the defaults: first a byte 0 and the number of a schema,
which is not kept. For such a converter Debezium writes names of fields as Avro allows
them. The schemas are in avro.json.gz, which Avro.java makes of documents in JSON.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import psycopg

from tests.support.fixtures.postgres import local_postgres, temporary_database
from tests.support.oracles.column_facts import TableFacts, facts_now
from walstream.lsn import Lsn, parse
from walstream.pipeline.pgoutput import Relation, decode

FOLDER = Path(__file__).parent
_SLOT = "golden"


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, without their semicolons."""
    quoted = False
    found = ""
    for character in script:
        quoted ^= character == "'"
        if character == ";" and not quoted:
            if found.strip():
                yield found.strip()
            found = ""
        else:
            found += character
    if found.strip():
        yield found.strip()


def frames() -> list[bytes]:
    """Read the recorded payloads."""
    recorded = json.loads(gzip.decompress((FOLDER / "frames.json.gz").read_bytes()))
    return [bytes.fromhex(payload) for _, _, payload in recorded]


def main() -> None:
    with local_postgres(18) as server, temporary_database(server) as database:
        found = list(_recorded(database.dsn))
    (FOLDER / "facts.json").write_text(
        "[\n" + ",\n".join(json.dumps(one) for one in found) + "\n]\n", "utf-8"
    )


def _recorded(dsn: str) -> Iterator[list[Any]]:
    """Yield schema, table and facts of each Relation message."""
    seen: list[tuple[Lsn, TableFacts]] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements((FOLDER / "schema.sql").read_text("utf-8")):
            connection.execute(statement.encode())
        connection.execute(
            "CREATE PUBLICATION golden FOR ALL TABLES"
            " WITH (publish_via_partition_root = true)"
        )
        connection.execute(
            "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (_SLOT,)
        )
        for statement in statements((FOLDER / "workload.sql").read_text("utf-8")):
            connection.execute(statement.encode())
            seen.append((_place(connection), facts_now(connection)))
        rows = connection.execute(
            "SELECT lsn::text, data FROM pg_logical_slot_get_binary_changes(%s, NULL,"
            " NULL, 'proto_version', '1', 'publication_names', 'golden', 'messages',"
            " 'true')",
            (_SLOT,),
        ).fetchall()
    tags = [payload[0] for _, payload in rows]
    assert tags == [payload[0] for payload in frames()], "another stream"
    for lsn, payload in rows:
        message = decode(bytes(payload))
        if isinstance(message, Relation):
            known = next(facts for place, facts in seen if place >= parse(lsn))
            columns = known[message.namespace, message.name]
            facts = [astuple(columns[column.name]) for column in message.columns]
            yield [message.namespace, message.name, facts]


def _place(connection: psycopg.Connection[Any]) -> Lsn:
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    return parse(row[0]) if row else 0


if __name__ == "__main__":
    main()
