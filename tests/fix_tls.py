"""Servers that speak TLS, a set for each module, and what is claimed of logins."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from consumer import BasicConsumer, Op
from tests.authority import Authority
from tests.consuming import Running
from tests.fix_mariadb import _must_be_installed
from tests.operator import checked
from tests.running import Walstream, toml
from tests.secured import PASSWORD, SecureKafka, SecureMariadb, SecurePostgres
from tests.services import needs_own_servers
from tests.waiting import wait_until


@dataclass(frozen=True)
class Secured:
    """The authority of all certificates that hold, one that nobody trusts, servers."""

    ours: Authority
    stranger: Authority
    postgres: SecurePostgres
    kafka: SecureKafka


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    needs_own_servers()
    folder = tmp_path_factory.mktemp("authorities")
    ours, stranger = Authority(folder, "ours"), Authority(folder, "stranger")
    postgres = SecurePostgres(ours)
    with postgres.server, SecureKafka(ours, stranger) as kafka:
        postgres.begin()
        kafka.alter(PASSWORD)
        yield Secured(ours, stranger, postgres, kafka)


@pytest.fixture(scope="module")
def secure_mariadb(secured: Secured) -> Iterator[SecureMariadb]:
    _must_be_installed()
    made = SecureMariadb(secured.ours)
    with made.server:
        made.begin()
        yield made


def check(walstream: Walstream, code: int = 0, *words: str) -> None:
    """Claim what `walstream check` ends with, and words of it."""
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    done = checked("-c", walstream.configuration)
    said = " ".join(done.stdout.split()) + done.stderr
    assert done.returncode == code, said
    for word in words:
        assert word in said, said


def consume(kafka: dict[str, Any], topic: str, count: int) -> None:
    """Claim that the consumer library reads so many ops with these properties."""
    ops: list[Op] = []
    consumer = BasicConsumer(
        ops.append, group=f"g-{secrets.token_hex(4)}", topics=[topic], kafka=kafka
    )
    with consumer:
        running = Running(consumer)
        wait_until(lambda: running.error or len(ops) >= count, 60, "ops come")
    running.join()
    assert len(ops) == count
