"""Connection strings, read as libpq reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from walstream.config import dsn


@pytest.mark.parametrize(
    "written",
    [
        "host=localhost dbname=shop",
        r" host = '/var/run/my sockets' port=5433 password='it\'s'",
        r"password=a\ b\\c user=x",
        "password='' user=x",
        "host=a,b port=1,2 hostaddr=10.0.0.1,10.0.0.2",
        "postgresql://",
        "postgres://u@h",
        "postgresql://u:p%40ss%2F@h:5433/db?sslmode=require&application_name=a%20b",
        "postgresql://u:p?#ss@h/db",
        "postgresql://h1:1,h2:2,[::1]:3/db",
        "postgresql://%2Frun%2Fpostgresql/db",
        "postgresql:///db?host=/run/postgresql&port=5433",
        "postgresql://u:@h/",
        "postgresql://[fe80::1%25eth0]/db",
    ],
)
def test_a_dsn_reads_as_libpq_reads_it(written: str) -> None:
    libpq = {k: str(v) for k, v in conninfo_to_dict(written).items()}
    ours = {k: v for k, v in dsn.parse(written).items() if v}
    assert ours == {k: v for k, v in libpq.items() if v}


WORDS = st.text(st.sampled_from("ab =\\'%@:/?&,[]0"), max_size=8)


@given(
    st.one_of(
        st.builds("host={} password={} dbname='{}'".format, WORDS, WORDS, WORDS),
        st.builds("postgresql://{}:{}@{}/{}".format, WORDS, WORDS, WORDS, WORDS),
        st.builds("postgres://{}/?password={}".format, WORDS, WORDS),
    )
)
def test_what_both_accept_means_the_same(written: str) -> None:
    try:
        ours = {k: v for k, v in dsn.parse(written).items() if v}
        libpq = {k: str(v) for k, v in conninfo_to_dict(written).items() if v}
    except (ValueError, ProgrammingError):
        return
    assert ours == {k: v for k, v in libpq.items() if v}


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("", "postgresql://user@host"),
        ("localhost", "postgresql://user@host"),
        ("mysql://u:cAnArY@h/db", "postgresql://user@host"),
        ("host='open cAnArY", "postgresql://user@host"),
        ("postgresql://u:cA@nArY@h/db", "%40"),
        ("postgresql://u:cA/nArY@h/db", "%2F"),
        ("postgresql://u:cAnArY%@h/db", "%25"),
        ("postgresql://u:cAnArY%FF@h/db", "UTF-8"),
        ("postgresql://h/db?cAnArY", "without a value"),
    ],
)
def test_what_libpq_would_misread_is_refused_without_a_word_of_it(
    written: str, wanted: str
) -> None:
    with pytest.raises(ValueError, match=wanted) as caught:
        dsn.parse(written)
    assert "nArY" not in str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        "host=h password=cAnArY%",
        "password = 'cAnArY%' sslpassword=cAnArY%",
        "postgresql://u:cAnArY%25@h:5433/db",
        "postgresql://h/db?password=cAnArY%25&user=u",
        "postgresql://u:cA@nArY%@h/db",
    ],
)
def test_a_masked_dsn_keeps_no_secret(written: str) -> None:
    assert "cAnArY" not in dsn.mask(written)
    assert any("nArY" in secret for secret in dsn.secrets(written))


def test_a_masked_dsn_still_leads_to_the_same_server() -> None:
    masked = dsn.mask("postgresql://u:x@h:5433/db?sslmode=verify-full&password=y")
    assert masked == "postgresql://u:***@h:5433/db?sslmode=verify-full&password=***"
    assert dsn.mask("host='a b' user=u password=x") == "host='a b' user=u password=***"
    assert dsn.mask("postgresql://u@h/db") == "postgresql://u@h/db"


def test_secrets_are_known_decoded_and_as_written() -> None:
    assert dsn.secrets("postgresql://u:a%40b@h/db") == {"a@b", "a%40b"}


@pytest.mark.parametrize(
    "host",
    [
        "",
        "/run/x",
        "@abstract",
        "localhost",
        "LOCALHOST.",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "[::1]",
        "::ffff:127.0.0.1",
    ],
)
def test_loopback_and_sockets_are_local(host: str) -> None:
    assert dsn.is_local(host)


@pytest.mark.parametrize(
    "host",
    ["db", "localhost.example.org", "10.0.0.1", "0.0.0.0", "127.1", "fe80::1%eth0"],  # noqa: S104 - nothing listens
)
def test_anything_else_is_remote(host: str) -> None:
    assert not dsn.is_local(host)


def test_hostaddr_decides_where_libpq_connects() -> None:
    parameters = {"host": "db.example.org,b", "hostaddr": "127.0.0.1,::1"}
    assert dsn.servers(parameters, {}) == [("127.0.0.1", "5432"), ("::1", "5432")]


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("postgresql://u:p@db.example.org:5433/shop", "db.example.org"),
        ("host=db.example.org hostaddr=10.0.0.1", "db.example.org"),
        ("hostaddr=10.0.0.1", "10.0.0.1"),
        ("postgresql:///db?host=/run/postgresql", "/run/postgresql"),
        ("postgresql://h1:1,h2:2/db", "h1,h2"),
        ("dbname=shop", ""),
    ],
)
def test_the_host_is_named_as_it_is_written(written: str, host: str) -> None:
    assert dsn.host(dsn.parse(written)) == host


def test_libpqs_environment_decides_where_the_dsn_is_silent() -> None:
    environment = {"PGHOST": "db", "PGPORT": "5433"}
    assert dsn.servers({}, environment) == [("db", "5433")]
    assert dsn.servers({"host": "a,b"}, environment) == [("a", "5433"), ("b", "5433")]
    assert dsn.servers({}, {}) == [("", "5432")]


def test_a_service_file_is_not_guessed_at() -> None:
    assert dsn.servers({"service": "x"}, {}) is None
    assert dsn.servers({}, {"PGSERVICE": "x"}) is None


@pytest.mark.parametrize(
    ("written", "place", "secrets"),
    [
        ("postgresql://h/d", "postgresql://h/d", []),
        ("postgresql://u@h/d", "postgresql://u@h/d", []),
        ("postgresql://u:p%40@h/d?x=1", "postgresql://u:<password>@h/d?x=1", ["p%40"]),
        (
            "postgresql://u:a@h/d?password=b&x=1&sslpassword=c",
            "postgresql://u:<password>@h/d?password=<password2>&x=1&sslpassword=<sslpassword>",
            ["a", "b", "c"],
        ),
        (
            "host=h password = 'a b'  user=u",
            "host=h password = '<password>'  user=u",
            ["a b"],
        ),
        ("password='' host=h", "password='' host=h", []),
        ("host=h passfile=/x", "host=h passfile=/x", []),
        ("dbname=${x} password=${y}", "dbname=$${x} password=<password>", ["${y}"]),
    ],
)
def test_secrets_are_taken_out_and_fit_in_again(
    written: str, place: str, secrets: list[str]
) -> None:
    text, found = dsn.extract(written, lambda key: f"<{key}>")
    assert text == place
    assert list(found.values()) == secrets


@pytest.mark.parametrize("written", ["$SHOP_DSN", "${SHOP_DSN}", " $SHOP_DSN "])
def test_a_shells_variable_is_told_how_it_is_written_here(written: str) -> None:
    with pytest.raises(ValueError, match=r"did you mean \$\{env:SHOP_DSN\}\?"):
        dsn.parse(written)
