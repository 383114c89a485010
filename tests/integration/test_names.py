"""Hostile identifiers, from the publication to the topic's name."""

from collections.abc import Iterator

import pytest
from psycopg import sql

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.oracles.topic_reader import Reader

NAMES = [  # of a schema, its table and a column; what the topic's name makes of it
    ("Mixed", "Mixed"),
    ('quo"te', "quo_x22_te"),
    ("it's", "it_x27_s"),
    ("dot.ted", "dot.ted"),
    ("spa ce ", "spa_x20_ce_x20_"),
    ("new\nline\t", "new_x0A_line_x09_"),
    ("back\\slash", "back_x5C_slash"),
    ("semi;--/*", "semi_x3B_--_x2F__x2A_"),
    ("{brace}", "_x7B_brace_x7D_"),
    ("%s %(x)s $1", "_x25_s_x20__x25__x28_x_x29_s_x20__x24_1"),
    ("wild*card?", "wild_x2A_card_x3F_"),
    ("select", "select"),
    ("\u00fcn\u00ef\U0001f642", "_xC3__xBC_n_xC3__xAF__xF0__x9F__x99__x82_"),
    ("a" * 63, "a" * 63),
    (",", "_x2C_"),
    ("-_.", "-_."),
]
PUBLICATION = "Pub \"x\" 'y', .\\\u00e9"
MAPPED = ('map"ped', "ta.b\nle", 'Co"l umn')
LONG = ("\u00e9" * 31, "\u00fc" * 31)  # 62 bytes, each spelt with five letters


def create(database: Database, schema: str, table: str, column: str) -> None:
    statement = (
        "CREATE SCHEMA IF NOT EXISTS {0}; CREATE TABLE {1} ({2} text PRIMARY KEY)"
    )
    database.execute(
        sql.SQL(statement).format(
            sql.Identifier(schema),
            sql.Identifier(schema, table),
            sql.Identifier(column),
        )
    )


def insert(database: Database, schema: str, table: str, text: str) -> None:
    database.execute(
        sql.SQL("INSERT INTO {} VALUES ({})").format(
            sql.Identifier(schema, table), sql.Literal(text)
        )
    )


def prepare(database: Database) -> None:
    for name, _ in NAMES:
        create(database, name, name, name)
    create(database, *MAPPED)
    create(database, *LONG, "c")


@pytest.fixture(scope="module")
def stream(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    mapped = f"names_{tmp_path_factory.getbasetemp().name}_{postgres.version}"
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("names"),
        before=prepare,
        source={"tables": ["*"], "publication": PUBLICATION},
        sink={
            "topics": {
                ".".join(MAPPED[:2]): {"name": mapped, "partition_key": [MAPPED[2]]},
                ".".join(LONG): {"name": f"{mapped}.long"},
            },
        },
    ) as running:
        yield running


@pytest.mark.parametrize(("name", "topic"), NAMES)
def test_hostile_names_reach_topics_of_their_own(
    stream: Stream, name: str, topic: str
) -> None:
    insert(stream.database, name, name, "x")
    stream.reader.until(lambda _: stream.reader.of(name))
    (record,) = stream.reader.of(name)
    assert record.topic == f"{stream.walstream.prefix}{topic}.{topic}"
    assert record.op.table.schema == name
    assert record.new == {name: "x"}


@pytest.mark.parametrize("table", [MAPPED[:2], LONG], ids=["mapped", "long"])
def test_a_mapping_is_found_by_the_plain_names(
    stream: Stream, kafka: KafkaServer, table: tuple[str, str]
) -> None:
    mapped = stream.walstream.sink["topics"][".".join(table)]["name"]
    with Reader(kafka.bootstrap, mapped) as reader:
        insert(stream.database, *table, "x")
        reader.until(lambda _: reader.of(table[1]))
        (record,) = reader.of(table[1])
    assert record.topic == mapped
    assert record.op.table.schema == table[0]
    assert record.key == b'["x"]'


def test_the_publications_are_named_as_they_were_written(stream: Stream) -> None:
    names = stream.database.fetch("SELECT pubname FROM pg_publication ORDER BY 1")
    assert names == [(PUBLICATION,), (f"{PUBLICATION}_insert",)]


@pytest.mark.same_on_15
def test_two_tables_that_would_meet_in_one_topic_are_refused_until_one_is_mapped(
    database: Database, runs: Runs, reader: Reader, topic_prefix: str
) -> None:
    create(database, "public", "a b", "c")
    create(database, "public", "a_x20_b", "c")
    walstream = runs(database.dsn).start()
    walstream.ends_with(2, "public.a b", "public.a_x20_b", "[sinks.")
    assert database.fetch("SELECT FROM pg_publication") == []

    topic = f"{topic_prefix}mapped"
    walstream.sink = {"topics": {"public.a b": {"name": topic}}}
    walstream.start().streaming()
    insert(database, "public", "a b", "1")
    insert(database, "public", "a_x20_b", "2")
    by_topic = {record.topic: record.op.new for record in reader.count(2)}
    assert by_topic == {topic: ["1"], f"{topic_prefix}public.a_x20_b": ["2"]}


@pytest.mark.same_on_15
@pytest.mark.xfail(
    strict=True,
    reason="catalog.tables and Router key tables by `schema.table`: one of the two"
    " is not captured, and both would share a topic",
)
def test_tables_that_differ_only_by_where_a_dot_stands_are_not_mixed(
    database: Database, runs: Runs
) -> None:
    create(database, "a.b", "c", "left_column")
    create(database, "a", "b.c", "right_column")
    walstream = runs(database.dsn, source={"tables": ["a.*"]}).start()
    walstream.ends_with(2, "a.b.c", "would share the topic", timeout_s=5)


@pytest.mark.same_on_15
def test_a_name_that_is_too_long_for_a_topic_is_refused_until_it_is_mapped(
    database: Database, runs: Runs
) -> None:
    create(database, *LONG, "c")
    walstream = runs(database.dsn, source={"tables": ["*"]}).start()
    walstream.ends_with(2, ".".join(LONG), "249", "[sinks.")
