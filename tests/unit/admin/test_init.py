"""A first configuration is written with its secrets apart, whatever the server says."""

import stat
from pathlib import Path

import pytest

from walstream.admin.init import (
    InitOptions,
    default_dsn,
    free_slot,
    init,
    next_steps,
    refuse,
    unproven,
)
from walstream.config import PostgresSource, load
from walstream.errors import ConfigError
from walstream.postgres.table_survey import Survey
from walstream.testing.servers.port import free_port

SPELT = "p%40%24%7Bss:w'rd"  # a password


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "walstream.toml"


@pytest.fixture
def away() -> str:
    """Name a server that refuses at once."""
    return f"postgresql://me:{SPELT}@127.0.0.1:{free_port()}/app"


def dsn_in(path: Path, **environment: str) -> str:
    source = load(path, environment).sources["app"]
    assert isinstance(source, PostgresSource)
    return source.dsn


def test_a_server_that_is_away_leaves_a_file_that_loads(
    output: Path, away: str
) -> None:
    written = init(InitOptions(output, away), {})
    assert "refused" in written.unseen
    assert (written.tables, written.topic) == (0, "public.orders")
    assert dsn_in(output) == away
    assert 'tables = ["public.*"]' in output.read_text()


@pytest.mark.parametrize("pattern", ["nodot", ""])
def test_a_pattern_that_cannot_match_a_table_is_refused_and_nothing_written(
    output: Path, away: str, pattern: str
) -> None:
    wishes = InitOptions(output, away, patterns=["public.*", pattern])
    with pytest.raises(ConfigError, match=f"pattern {pattern!r} cannot match a table"):
        init(wishes, {})
    assert list(output.parent.iterdir()) == []


def test_a_password_goes_into_a_file_for_its_owner_alone(
    output: Path, away: str
) -> None:
    (path,) = init(InitOptions(output, away), {}).secrets
    assert path == output.with_name("walstream.password")
    assert path.read_text() == f"{SPELT}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SPELT not in output.read_text()


def test_a_password_is_taken_out_of_pairs_too(output: Path) -> None:
    dsn = rf"host=127.0.0.1 port={free_port()} password='it\'s' sslpassword=p\ q"
    password, key_password = init(InitOptions(output, dsn), {}).secrets
    assert password.read_text() == "it\\'s\n"
    assert key_password.name == "walstream.sslpassword"
    assert dsn_in(output) == dsn


def test_what_comes_from_the_environment_stays_there(output: Path, away: str) -> None:
    written = init(InitOptions(output, away, from_variable=True), {})
    assert not written.secrets
    assert 'dsn = "${env:WALSTREAM_DSN}"' in output.read_text()
    assert dsn_in(output, WALSTREAM_DSN=away) == away


def test_nothing_is_written_over_unless_told(output: Path, away: str) -> None:
    output.write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        init(InitOptions(output, away), {})
    assert output.read_text() == "mine"
    output.unlink()
    secret = output.with_name("walstream.password")
    secret.write_text("mine")
    secret.chmod(0o644)
    with pytest.raises(ConfigError, match="exists already"):
        init(InitOptions(output, away), {})
    assert not output.exists()
    init(InitOptions(output, away, force=True), {})
    assert secret.read_text() == f"{SPELT}\n"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_servers_elsewhere_are_not_asked_without_proof_or_consent(
    output: Path,
) -> None:
    wishes = InitOptions(output, "postgresql://db.invalid/app", "kafka.invalid:9092")
    assert "does not connect" in init(wishes, {}).unseen
    with pytest.raises(ConfigError, match="verify-full") as refused:
        load(output, {})
    assert "security.protocol" in str(refused.value)
    written = init(InitOptions(output, wishes.dsn, insecure=True, force=True), {})
    assert "db.invalid" in written.unseen
    assert load(output, {}).postgres_source("app").insecure


def test_consent_is_not_used_where_it_is_not_needed(output: Path, away: str) -> None:
    init(InitOptions(output, away, insecure=True), {})
    assert "insecure = true\n" not in output.read_text()


def test_which_servers_are_not_proven_is_told_apart() -> None:
    source, sink = unproven("host=db.example", "localhost:9092", {})
    assert "db.example" in source[0]
    assert not sink
    source, sink = unproven("host=localhost", "a.example:1,b.example:2", {})
    assert not source
    assert "a.example, b.example" in sink[0]


@pytest.mark.parametrize("dsn", ["", "nonsense", "postgresql://h/%zz"])
def test_what_is_no_connection_string_is_refused(dsn: str, output: Path) -> None:
    with pytest.raises(ConfigError, match="the connection string"):
        init(InitOptions(output, dsn), {})
    assert not output.exists()


@pytest.mark.parametrize(
    ("dsn", "hints"), [("mysql+pymysql://u@h/d", True), ("postgresql://h/%zz", False)]
)
def test_a_database_of_another_kind_is_told_how_it_is_read(
    dsn: str, hints: bool
) -> None:
    with pytest.raises(ConfigError) as refused:
        unproven(dsn, "localhost:9092", {})
    assert ("docs/polling.md" in refused.value.hint) is hints


def test_names_and_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="source name"):
        refuse(tmp_path / "w.toml", "My App", force=False)
    with pytest.raises(ConfigError, match=r"\.toml"):
        refuse(tmp_path / "w.yaml", "app", force=False)
    with pytest.raises(ConfigError, match="cannot be written"):
        init(InitOptions(tmp_path / "no" / "w.toml", "host=/nowhere"), {})
    with pytest.raises(ConfigError, match="cannot name it"):
        init(InitOptions(tmp_path / "{x}" / "w.toml", "host=/nowhere password=x"), {})


@pytest.mark.parametrize(
    "brokers",
    ["", "a b:1", "postgresql://me@h:5432/app", "h:port", "a:1,,b:2", "h:1/x"],
)
def test_what_names_no_brokers_is_refused(
    brokers: str, output: Path, away: str
) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        init(InitOptions(output, away, brokers), {})
    assert not output.exists()


@pytest.mark.parametrize(
    "brokers", ["localhost", "a.example:1, [::1]:9092", "PLAINTEXT://b_1:9092"]
)
def test_brokers_are_taken_as_librdkafka_takes_them(brokers: str) -> None:
    unproven("host=localhost", brokers, {})


@pytest.mark.parametrize(
    ("source", "taken", "slot"),
    [
        ("app", (), "walstream"),
        ("app", ("walstream",), "walstream_my_shop"),
        ("app", ("walstream", "walstream_my_shop"), "walstream_my_shop_2"),
        ("my-app", (), "walstream_my_app"),
        ("x" * 100, (), f"walstream_{'x' * 46}"),
    ],
)
def test_a_slot_is_named_that_nobody_has(
    source: str, taken: tuple[str, ...], slot: str
) -> None:
    assert free_slot(source, Survey([], "My Shop", frozenset(taken))) == slot


def test_wished_patterns_are_taken_as_they_are(output: Path, away: str) -> None:
    init(InitOptions(output, away, patterns=["a.*", "b.c"]), {})
    source = load(output, {}).sources["app"]
    assert isinstance(source, PostgresSource)
    assert source.tables == ["a.*", "b.c"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PGDATABASE": "app"}, "postgresql://localhost/app"),
        ({"PGUSER": "m e", "PGPORT": "6"}, "postgresql://m%20e@localhost:6/m%20e"),
        ({"PGHOST": "h", "PGDATABASE": "a"}, "postgresql://h/a"),
        ({"PGHOST": "/run/pg", "PGDATABASE": "a"}, "postgresql:///a?host=/run/pg"),
        ({"PGDATABASE": "a", "PGPASSWORD": "s"}, "postgresql://localhost/a"),
    ],
)
def test_libpqs_variables_are_a_first_guess(
    environment: dict[str, str], expected: str
) -> None:
    assert default_dsn(environment) == expected


def test_without_variables_the_login_is_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOGNAME", "someone")
    assert default_dsn({}) == "postgresql://localhost/someone"


def test_what_comes_next_is_three_commands() -> None:
    assert list(next_steps("public.t")) == [
        "walstream check",
        "walstream run",
        "walstream tail public.t",
    ]
