"""What one key alone cannot tell."""

from collections.abc import Callable

import pytest

Complain = Callable[..., str]


@pytest.mark.parametrize(
    ("addition", "wanted"),
    [
        ('[sources.App]\nkind = "sql"', "sources.App: is not a valid name: write a-z"),
        ('[sinks."a b"]\nkind = "log"', 'sinks."a b": is not a valid name'),
        ('[sinks.log]\nkind = "log"\ntopic = ""', "sinks.log.topic: is empty"),
        (
            (
                '[sinks.log]\nkind = "log"\nfallback_topic = "f"\n'
                'topics."a.b" = { name = "f" }'
            ),
            'sinks.log.topics."a.b".name: "f" is the fallback_topic too',
        ),
        (
            '[sinks.log]\nkind = "log"\nformat = "event"\nembed = ["table"]',
            'sinks.log.embed: has no effect on format "event"',
        ),
        (
            '[sinks.log]\nkind = "log"\nformat = "tungsten"\nembed = ["x"]',
            "sinks.log.embed[0]: ",
        ),
        (
            (
                '[sinks.log]\nkind = "log"\nformat = "tungsten"\n'
                'embed = ["table", "table"]'
            ),
            "sinks.log.embed: has an entry twice",
        ),
        (
            '[sinks.x]\nkind = "kafka"\ntxinfo = "records"\nproducer = {}',
            'sinks.x.txinfo: records of format "op" have no place for it',
        ),
        (
            '[sinks.x]\nkind = "kafka"\nformat = "row"\ntxinfo = "t"\nproducer = {}',
            "sinks.x.txinfo: has no effect on rows",
        ),
        (
            (
                '[sinks.x]\nkind = "kafka"\ntxinfo = "t"\nfallback_topic = "t"\n'
                "producer = {}"
            ),
            'sinks.x.txinfo: "t" also takes ops',
        ),
        (
            (
                '[sinks.x]\nkind = "kafka"\nformat = "tungsten"\n'
                'txinfo = "records"\nproducer = {}\n'
                '[[sinks.x.handlers]]\nkind = "passthrough"'
            ),
            "sinks.x.txinfo: counts what the source sent",
        ),
        (
            '[sinks.x]\nkind = "kafka"\nresolved = "1s"\nproducer = {}',
            "sinks.x.resolved: needs a topic of txinfo",
        ),
        (
            (
                '[sinks.x]\nkind = "kafka"\nresolved = "1s"\nproducer = {}\n'
                'format = "debezium"\ntxinfo = "told"'
            ),
            "sinks.x.resolved: needs a topic of txinfo",
        ),
        (
            (
                '[sinks.x]\nkind = "kafka"\nresolved = "1s"\nproducer = {}\n'
                'txinfo = "told"\nat_most_once = true'
            ),
            "sinks.x.resolved: promises that records are below an offset",
        ),
        (
            (
                '[sources.a]\nkind = "postgres"\ndsn = "host=/x"\n'
                'sinks = ["x", "y"]\ndetach_after = "8s"\n'
                '[sinks.x]\nkind = "log"\nbatch_interval = "5s"\n'
                '[sinks.y]\nkind = "log"'
            ),
            "sinks.x.batch_interval: is longer than 4 s",
        ),
        (
            '[sinks.x]\nkind = "kafka"\ntxinfo = "{table}"\nproducer = {}',
            'sinks.x.txinfo: "{table}" is not a valid topic name',
        ),
        (
            '[sinks.log]\nkind = "log"\nformat = "row"\nstrict = true',
            "sinks.log.strict: has no effect on rows",
        ),
        (
            '[sinks.log]\nkind = "log"\nstrict = true',
            'sinks.log.on_truncate: is "send", and strict is true',
        ),
        (
            (
                '[sources.a]\nkind = "postgres"\ndsn = "host=/x"\nsinks = ["log"]\n'
                '[sinks.log]\nkind = "log"\nstrict = true\non_truncate = "stop"\n'
            ),
            "sources.a.backfill: would send rows in parallel to sinks.log",
        ),
        (
            (
                '[sources.old]\nkind = "sql"\nurl = "mysql://u@db/d"\n'
                'sinks = ["kafka"]\n'
                '[sources.old.tables.t]\nprimary_key = "id"\nparallelism = 99\n'
            ),
            "sources.old.tables.t.parallelism: is 99: write a number up to 64",
        ),
        (
            (
                '[sources.old]\nkind = "sql"\nurl = "mysql://u@db/d"\n'
                'sinks = ["kafka"]\n[sources.old.tables.t]\nprimary_key = "id"\n'
            ),
            "sources.old.url: leads to db, which is not this machine",
        ),
        (
            "".join(
                f'[sources.{name}]\nkind = "sql"\nurl = "sqlite://"\nname = "x"\n'
                f'sinks = ["kafka"]\n[sources.{name}.tables.t]\nprimary_key = "id"\n'
                for name in ("old", "new")
            ),
            'sources.new.name: "x" is the name in the records of sources.old too',
        ),
        ('[spark.conf]\n"x.y" = 1', 'spark.conf."x.y": is not Spark\'s'),
        (
            (
                '[sources.b]\nkind = "postgres"\ndsn = "host=x"\nsinks = ["kafak"]\n'
                "insecure = true"
            ),
            'sources.b.sinks: there is no sink "kafak": did you mean kafka?',
        ),
    ],
)
def test_what_does_not_fit_is_named(
    valid: str, complaint: Complain, addition: str, wanted: str
) -> None:
    assert wanted in complaint(valid + addition)


def test_a_mapping_alone_or_a_fallback_alone_is_enough(
    valid: str, load_text: Callable[..., object]
) -> None:
    load_text(valid + 'topic = ""\nfallback_topic = "f"')
    load_text(valid + 'topic = ""\ntopics.orders = { name = "o" }')


def test_sources_and_sinks_are_wanted(complaint: Complain) -> None:
    shown = complaint('state = "x"')
    assert "sources: there is none: write [sources.NAME]" in shown
    assert "sinks: there is none" in shown


def test_a_missing_sink_is_found_beside_another_mistake(complaint: Complain) -> None:
    shown = complaint('[sources.a]\nkind = "postgres"\nsinks = ["x"]\nslot = 5')
    assert 'there is no sink "x"' in shown
    assert "sources.a.slot" in shown
    assert "sources.a.dsn: is missing" in shown


def test_an_override_is_checked_like_the_file(valid: str, complaint: Complain) -> None:
    shown = complaint(valid, {"WALSTREAM__SOURCES__APP__SINKS": '["kafak"]'})
    assert "did you mean kafka?" in shown


def test_who_listens_for_others_wants_a_token(
    valid: str, load_text: Callable[..., object], complaint: Complain
) -> None:
    http = '\n[http]\nlisten = "0.0.0.0:8321"\n'
    assert 'http.token: is missing: "0.0.0.0:8321"' in complaint(valid + http)
    load_text(valid + http + f'token = "{"x" * 16}"')
    for loopback in ("127.0.0.2:1", "[::1]:1", "localhost:1", ""):
        load_text(valid + f'\n[http]\nlisten = "{loopback}"\n')


@pytest.mark.parametrize("listen", ["127.0.0.1:8321", "0.0.0.0:8321"])
def test_a_token_that_can_be_guessed_is_refused(
    valid: str, complaint: Complain, listen: str
) -> None:
    http = f'\n[http]\nlisten = "{listen}"\ntoken = "{"x" * 15}"\n'
    said = complaint(valid + http)
    assert "http.token: has fewer than 16 characters" in said
    assert "openssl rand" in said
    assert "xxx" not in said
    unsendable = "with a space, and longer than it has to be"
    http = f'\n[http]\nlisten = "{listen}"\ntoken = "{unsendable}"\n'
    assert "space" not in complaint(valid + http)


def test_probes_have_an_address_of_their_own(
    valid: str, load_text: Callable[..., object], complaint: Complain
) -> None:
    http = '\n[http]\nprobes = "127.0.0.1:8321"\n'
    assert "http.probes: is the address of listen" in complaint(valid + http)
    for elsewhere in ("0.0.0.0:8322", "127.0.0.2:8321", "10.0.0.5:8321"):
        load_text(valid + f'\n[http]\nprobes = "{elsewhere}"\n')
    for all_of_them in ("0.0.0.0:8321", "[::]:8321", "0.0.0.0:08321"):
        http = f'\n[http]\nprobes = "{all_of_them}"\n'
        assert "http.probes: has the port of listen" in complaint(valid + http)
