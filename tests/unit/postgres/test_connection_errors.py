"""What a refused connection means, and the repair that fits the very role."""

import pytest

from walstream.errors import (
    CertificateRefused,
    ConfigError,
    LoginRefused,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.postgres.connection_errors import hba_line, refused

HBA = (
    'FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "Wal", database "shop",'
    " no encryption"
)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ('FATAL:  role "Wal" does not exist', 'CREATE ROLE "Wal" LOGIN REPLICATION;'),
        ('FATAL:  role "Wal" is not permitted to log in', 'ALTER ROLE "Wal" LOGIN;'),
        (
            "FATAL:  permission denied to start WAL sender",
            'ALTER ROLE "Wal" REPLICATION;',
        ),
        (
            'FATAL:  permission denied for database "shop"',
            'GRANT CONNECT ON DATABASE "shop" TO "Wal";',
        ),
    ],
)
def test_repair_names_the_role_and_the_database(text: str, sql: str) -> None:
    found = refused("connecting", text, "Wal", "shop")
    assert isinstance(found, PermissionLacking)
    assert found.repair.sql == sql
    assert "the_role" not in f"{found} {found.repair}"


def test_who_is_not_known_gets_no_statement() -> None:
    assert not refused("connecting", 'FATAL:  role "x" does not exist').repair


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('FATAL:  database "d" does not exist', ConfigError),
        ("FATAL:  password authentication failed for user", LoginRefused),
        ("FATAL:  unsupported startup parameter: options", ConfigError),
        ("FATAL:  unsupported startup parameter in options: search_path", ConfigError),
        ("FATAL:  unsupported startup parameter: replication", ConfigError),
        ("FATAL:  Feature not supported: RDS Proxy currently doesn't", ConfigError),
    ],
)
def test_what_no_statement_cures_is_left_to_a_person(
    text: str, kind: type[WalstreamError]
) -> None:
    found = refused("connecting", text, "u", "d")
    assert type(found) is kind
    assert found.repair.then == found.hint
    assert not found.repair.sql


@pytest.mark.parametrize(
    "text",
    [
        "connection refused",
        "FATAL:  the database system is starting up",
        'FATAL:  number of requested standby connections exceeds "max_wal_senders"',
    ],
)
def test_what_passes_is_tried_again(text: str) -> None:
    found = refused("connecting", text, "u", "d")
    assert type(found) is Transient
    assert not found.repair


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HBA, 'host "shop" "Wal" 10.0.0.7/32 scram-sha-256'),
        (
            HBA.replace("no encryption", "SSL encryption"),
            'hostssl "shop" "Wal" 10.0.0.7/32 scram-sha-256',
        ),
        (
            HBA.replace("no pg_hba.conf entry", "pg_hba.conf rejects connection"),
            'host "shop" "Wal" 10.0.0.7/32 scram-sha-256',
        ),
        (
            HBA.replace("10.0.0.7", "fe80::1"),
            'host "shop" "Wal" fe80::1/128 scram-sha-256',
        ),
        (HBA.replace("10.0.0.7", "[local]"), 'local "shop" "Wal" scram-sha-256'),
        ("connection refused", ""),
    ],
)
def test_line_of_pg_hba_lets_this_connection_in(text: str, line: str) -> None:
    assert hba_line(text) == line
    if line:
        found = refused("connecting", text, "Wal", "shop")
        assert isinstance(found, PermissionLacking)
        assert found.repair.then.endswith(line)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            (
                'root certificate file "/x" does not exist. Either provide the file,'
                " use"
                " the system's trusted roots with sslrootcert=system, or change sslmode"
                " to disable server certificate verification."
            ),
            "sslrootcert",
        ),
        ('private key file "/x" has group or world access; u=rw (0600)', "chmod 0600"),
        ('could not load private key file "/x": bad decrypt', "sslpassword"),
        ('could not read certificate file "/x": no start line', "sslcert"),
        ('certificate present, but not private key file "/x"', "sslkey"),
        ("SSL error: certificate verify failed", "if it has expired"),
        ("SSL error: tlsv1 alert unknown ca", "ssl_ca_file"),
        ("SSL error: ssl/tls alert certificate expired", "renew sslcert"),
        ("FATAL:  connection requires a valid client certificate", "set sslcert"),
    ],
)
def test_files_of_tls_that_do_not_hold_are_no_trouble_that_passes(
    text: str, hint: str
) -> None:
    found = refused("connecting", text, "u", "d")
    assert type(found) is CertificateRefused
    assert found.exit_code == 2
    assert hint in found.hint
    assert "sslmode" not in str(found)
