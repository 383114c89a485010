"""Secrets: found, masked, scrubbed."""

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.config.secret import Secrets, collect, mask_value, scrub_shapes

PASSWORDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=3, max_size=20
).filter(lambda text: "*" not in text)


@given(PASSWORDS, st.text(max_size=20), st.text(max_size=20))
def test_a_known_secret_leaves_every_text(
    password: str, before: str, after: str
) -> None:
    secrets = Secrets(frozenset({password}))
    for form in (password, quote(password, safe=""), json.dumps(password)[1:-1]):
        scrubbed = secrets.scrub(f"{before} {form} {after}")
        if form not in f"{before} *** {after}":
            assert form not in scrubbed


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"dsn": r"host=h password='it\'s me'"}, "it's me"),
        ({"dsn": "postgresql://u:it%27s%20me@h/d"}, "it's me"),
        ({"url": "mysql://u:it%27s%20me@h/d"}, "it's me"),
        ({"deep": [{"sasl.password": "it's me"}]}, "it's me"),
        ({"plain": "a word of it's me in a text"}, "it's me"),
        ({"plain": "nothing"}, None),
        ({}, None),
    ],
)
def test_a_part_holds_the_secrets_that_stand_in_it_however_spelt(
    document: dict[str, object], found: str | None
) -> None:
    known = {"it's me", "it's not me", *collect(document)}
    expected = {found, *collect(document)} - {None}
    assert Secrets(frozenset(known)).within(document) == expected


@pytest.mark.parametrize(
    "text",
    [
        'connection to "host=db password=cAnArY user=x" failed',
        "password='cAn ArY' host=x",
        'PASSWORD = "cAnArY;x"',
        "Driver={x};PWD=cAnArY;Server=y",
        "pqopt={password=cAnArY sslmode=x}",
        "postgresql://user:cAnArY@host/db",
        "amqp://user:cA@nArY@host",
        "mysql+pymysql://u:cAnArY@h?x=1",
        "sasl.password=cAnArY",
        '{"sasl.password": "cAnArY"}',
        "{'ssl.key.pem': 'cAnArY\\n'}",
        "-Djavax.net.ssl.trustStorePassword=cAnArY -Dx=y",
        "sasl.oauthbearer.client.secret=cAnArY",
        "access_token=cAnArY&x=1",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    scrubbed = scrub_shapes(text)
    assert "nArY" not in scrubbed
    assert "ArY" not in scrubbed
    assert scrub_shapes(scrubbed) == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        'password authentication failed for user "app"',
        "FATAL: no password supplied",
        "password: wrong",
        "http://127.0.0.1:8321/status",
        "sinks.kafka.producer: unknown property",
    ],
)
def test_plain_messages_stay_readable(text: str) -> None:
    assert Secrets(frozenset({"cAnArY"})).scrub(text) == text


def test_the_lines_of_a_key_file_are_secrets_too() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nabc\n-----END-----"
    scrubbed = Secrets(frozenset({key})).scrub("bad line MIIEvQIBADANBgkqhkiG9w0")
    assert scrubbed == "bad line ***"


def test_secrets_are_found_by_the_names_of_their_keys() -> None:
    document = {
        "sources": {
            "app": {"dsn": "postgresql://u:dsn%20pw@h/db"},
            "old": {"url": "mysql://u:url@pw@h/db?password=query-pw"},
            "odbc": {
                "url": "mssql+pyodbc:///?odbc_connect=PWD%3D%7Bodbc-pw%7D%3Bx%3D1"
            },
        },
        "sinks": {
            "kafka": {
                "topics": {"passwords": {"name": "shown", "partition_key": ["token"]}},
                "producer": {"sasl.password": "kafka-pw", "client.id": "shown"},
            }
        },
        "spark": {"conf": {"spark.x.secret.key": "spark-pw", "spark.token.on": "true"}},
    }
    found = set(collect(document))
    wanted = {"dsn pw", "url@pw", "query-pw", "odbc-pw", "kafka-pw", "spark-pw"}
    assert wanted <= found
    assert not found & {"shown", "token", "true"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://u:cAnArY@h/db", "mysql://u:***@h/db"),
        ("mysql://u:cA@nA?rY@h/db", "mysql://u:***@h/db"),
        ("mysql://u@h/db", "mysql://u@h/db"),
        ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"),
        ("mysql://h/db?password=cAnArY&a=b", "mysql://h/db?password=***&a=b"),
    ],
)
def test_a_masked_url_still_leads_to_the_same_server(url: str, shown: str) -> None:
    assert mask_value("url", url) == shown


@pytest.mark.parametrize("password", ["p@ss:w/ord", "a b+c%", "ünï", "%41@"])
def test_a_password_is_scrubbed_however_an_url_spells_it(password: str) -> None:
    for spelt in (quote(password, safe=""), quote(password, safe=" +")):
        document = {"url": f"mysql+pymysql://u:{spelt}@h/db"}
        secrets = Secrets(frozenset(collect(document)))
        for shown in (password, quote(password, safe=""), quote(password, safe=" +")):
            assert secrets.scrub(f"no such user with {shown}.") == (
                "no such user with ***."
            )


def test_the_password_in_an_odbc_parameter_is_masked() -> None:
    url = "mssql+pyodbc:///?odbc_connect=Driver%3Dx%3BPWD%3DcAnArY%3BServer%3Dy"
    assert "cAnArY" not in mask_value("url", url)
    assert "Server" in mask_value("url", url)


def test_an_empty_secret_stays_empty() -> None:
    assert mask_value("sasl.password", "") == ""


def test_no_secret_stands_in_a_repr() -> None:
    assert "cAnArY" not in repr(Secrets(frozenset({"cAnArY"})))


def test_no_text_makes_the_scrubber_slow() -> None:
    secrets = Secrets(frozenset({"cAnArY"}))
    started = time.perf_counter()
    for text in ("password" * 20_000, "://:" * 40_000, "secret'='" * 20_000):
        secrets.scrub(text)
    assert time.perf_counter() - started < 10
