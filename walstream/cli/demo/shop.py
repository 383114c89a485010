"""The demo's database: a small shop, and triggers that count what is written to it.

Each row that a committed transaction changes leaves one row in `demo_audit.changes`,
which is not published. An update of a key counts as a delete and an insert, as it
arrives.
"""

from collections import Counter
from typing import Final

from walstream.cli.demo.tally import DemoChange, Rows
from walstream.postgres.connection import Connection

TABLES: Final = (
    "shop.customers",
    "shop.products",
    "shop.orders",
    "shop.order_lines",
    "shop.page_views",
)

_SHOP_SQL: Final = """
CREATE SCHEMA shop;
CREATE TABLE shop.customers (
    id bigint PRIMARY KEY, name text NOT NULL, city text, since date NOT NULL);
ALTER TABLE shop.customers REPLICA IDENTITY FULL;
CREATE TABLE shop.products (
    sku text PRIMARY KEY, name text NOT NULL, price numeric(8,2) NOT NULL,
    stock int NOT NULL, description text);
-- kept out of line, uncompressed: an update that leaves it alone does not send it
ALTER TABLE shop.products ALTER description SET STORAGE EXTERNAL;
CREATE TABLE shop.orders (
    id bigint PRIMARY KEY, customer_id bigint NOT NULL, status text NOT NULL,
    total numeric(10,2) NOT NULL, placed_at timestamptz NOT NULL);
CREATE TABLE shop.order_lines (
    order_id bigint, line int, sku text NOT NULL, quantity int NOT NULL,
    PRIMARY KEY (order_id, line));
CREATE TABLE shop.page_views (
    id bigint, viewed_at timestamptz, path text NOT NULL, seconds int,
    PRIMARY KEY (id, viewed_at)) PARTITION BY RANGE (viewed_at);
CREATE TABLE shop.page_views_01 PARTITION OF shop.page_views
    FOR VALUES FROM ('2026-01-01Z') TO ('2026-02-01Z');
CREATE TABLE shop.page_views_02 PARTITION OF shop.page_views
    FOR VALUES FROM ('2026-02-01Z') TO ('2026-03-01Z');
CREATE TABLE shop.page_views_other PARTITION OF shop.page_views DEFAULT;
"""
_AUDIT_SQL: Final = """
CREATE SCHEMA demo_audit;
CREATE TABLE demo_audit.changes (
    table_name text NOT NULL, operation text NOT NULL, key text[] NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id());

-- the columns as an array of texts: of the key, or all
CREATE FUNCTION demo_audit.texts(watched regclass, of_key boolean, prefix text)
RETURNS text LANGUAGE sql AS $$
    SELECT format('ARRAY[%s]',
        string_agg(format('%s%I::text', prefix, attname), ', ' ORDER BY attnum))
    FROM pg_attribute JOIN pg_index ON indrelid = attrelid AND indisprimary
    WHERE attrelid = watched AND attnum > 0 AND NOT attisdropped
        AND (NOT of_key OR attnum = ANY (indkey))
$$;

CREATE PROCEDURE demo_audit.watch(watched regclass) LANGUAGE plpgsql AS $$
DECLARE
    old_key text := demo_audit.texts(watched, true, 'old.');
    new_key text := demo_audit.texts(watched, true, 'new.');
BEGIN
    EXECUTE format($body$
        CREATE FUNCTION demo_audit.%I() RETURNS trigger LANGUAGE plpgsql AS $trigger$
        BEGIN
            IF TG_OP = 'UPDATE' AND %s = %s THEN
                INSERT INTO demo_audit.changes VALUES (%L, 'Update', %s);
                RETURN NULL;
            END IF;
            IF TG_OP <> 'INSERT' THEN
                INSERT INTO demo_audit.changes VALUES (%L, 'Delete', %s);
            END IF;
            IF TG_OP <> 'DELETE' THEN
                INSERT INTO demo_audit.changes VALUES (%L, 'Insert', %s);
            END IF;
            RETURN NULL;
        END $trigger$
        $body$, 'after_' || watched, old_key, new_key,
        watched, new_key, watched, old_key, watched, new_key);
    EXECUTE format('CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON %s'
        ' FOR EACH ROW EXECUTE FUNCTION demo_audit.%I()', watched, 'after_' || watched);
END $$;

CREATE FUNCTION demo_audit.contents(watched regclass)
RETURNS TABLE (names text[], key text[], texts text[]) LANGUAGE plpgsql AS $$
DECLARE
    columns text[] := ARRAY(SELECT attname::text FROM pg_attribute
        WHERE attrelid = watched AND attnum > 0 AND NOT attisdropped ORDER BY attnum);
BEGIN
    RETURN QUERY EXECUTE format('SELECT $1, %s, %s FROM %s',
        demo_audit.texts(watched, true, ''), demo_audit.texts(watched, false, ''),
        watched) USING columns;
END $$;
"""


def create(connection: Connection) -> None:
    """Make the empty shop and its audit."""
    connection.execute(_SHOP_SQL)
    connection.execute(_AUDIT_SQL)
    for table in TABLES:
        connection.execute("CALL demo_audit.watch(%s)", (table,))


def written(connection: Connection) -> Counter[DemoChange]:
    """Count what committed transactions changed, by table, operation and key."""
    rows = connection.execute(
        "SELECT table_name, operation, key, count(*) FROM demo_audit.changes"
        " GROUP BY 1, 2, 3"
    )
    return Counter(
        {DemoChange(table, kind, tuple(key)): count for table, kind, key, count in rows}
    )


def transactions(connection: Connection) -> int:
    """Count those that changed something."""
    found = connection.execute(
        "SELECT count(DISTINCT xid) FROM demo_audit.changes"
    ).fetchone()
    return int(found[0]) if found else 0


def contents(connection: Connection) -> dict[str, Rows]:
    """Read every table as it is, in PostgreSQL's texts."""
    return {table: _rows(connection, table) for table in TABLES}


def _rows(connection: Connection, table: str) -> Rows:
    found = connection.execute(
        "SELECT names, key, texts FROM demo_audit.contents(%s)", (table,)
    )
    return {
        tuple(key): dict(zip(names, texts, strict=True)) for names, key, texts in found
    }


def stream_is_open(connection: Connection, slot: str) -> bool:
    """Whether every later commit reaches the slot."""
    found = connection.execute(
        "SELECT confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots"
        " WHERE slot_name = %s",
        (slot,),
    ).fetchone()
    return found is not None and bool(found[0])
