"""Some of Kafka's own commands, as far as printed repairs use them.

The jars of the tests' broker hold kafka-configs.sh, and neither kafka-topics.sh nor
kafka-acls.sh nor kafka-consumer-groups.sh: these ask the same of the same brokers.

    python -m tests.support.servers.kafka_tools COMMAND

COMMAND is `topics --bootstrap-server HOST:PORT --create --topic T`, for example.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

_WAIT_S = 30


def main() -> None:
    """Do what one command says; any other option is an error."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("tool", choices=["topics", "acls", "consumer-groups"])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", default="")
    parser.add_argument("--transactional-id", default="")
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--command-config")
    parser.add_argument("--create", action="store_true")
    parser.add_argument("--partitions", type=int, default=-1)
    parser.add_argument("--replication-factor", type=int, default=-1)
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--allow-principal")
    parser.add_argument("--operation", action="append", default=[])
    parser.add_argument("--group")
    parser.add_argument("--reset-offsets", action="store_true")
    parser.add_argument("--to-offset", type=int)
    parser.add_argument("--to-earliest", action="store_true")
    parser.add_argument("--execute", action="store_true")
    told = parser.parse_args()
    admin = client(told.bootstrap_server, told.command_config)
    tools = {"topics": _topics, "acls": _acls, "consumer-groups": _groups}
    for done in tools[told.tool](admin, told):
        try:
            done.result(_WAIT_S)
        except KafkaException as error:
            sys.exit(str(error))


def client(bootstrap: str, login: str | None = None) -> Any:
    """Open one that is logged in as a file of Kafka's own tools says."""
    return AdminClient({"bootstrap.servers": bootstrap, **_login(login)})


def allow(
    admin: Any,
    principal: str,
    topic: str,
    operations: Iterable[AclOperation],
    *,
    transactions: str = "",
) -> list[Any]:
    """Grant rights on one topic, or on ids of transactions that begin so.

    Give what to wait for.
    """
    kind, pattern = ResourceType.TOPIC, ResourcePatternType.LITERAL
    if transactions:
        kind, pattern = ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED
    asked = admin.create_acls(
        [
            AclBinding(
                kind,
                transactions or topic,
                pattern,
                principal,
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in operations
        ]
    )
    return list(asked.values())


def _login(file: str | None) -> dict[str, Any]:
    """Read a client's properties, written as Kafka's own tools read them."""
    if file is None:
        return {}
    text = Path(file).read_text()
    pairs = dict(re.findall(r"^([a-z.]+)=(\S+)$", text, re.MULTILINE))
    login = dict(re.findall(r'(username|password)="(.*?)"', text))
    return {**pairs, **{f"sasl.{key}": value for key, value in login.items()}}


def _topics(admin: Any, told: argparse.Namespace) -> Any:
    assert told.create
    config = dict(pair.split("=", 1) for pair in told.config)
    topic = NewTopic(
        told.topic, told.partitions, told.replication_factor, config=config
    )
    return admin.create_topics([topic]).values()


def _acls(admin: Any, told: argparse.Namespace) -> Any:
    assert told.add
    names = {one.name.replace("_", "").lower(): one for one in AclOperation}
    wanted = [names[operation.lower()] for operation in told.operation]
    which = told.transactional_id
    assert bool(which) == (told.resource_pattern_type == "prefixed") != bool(told.topic)
    return allow(admin, told.allow_principal, told.topic, wanted, transactions=which)


def _groups(admin: Any, told: argparse.Namespace) -> Any:
    assert told.reset_offsets
    assert told.execute
    topic, _, partition = told.topic.partition(":")
    found = admin.list_topics(topic, timeout=_WAIT_S).topics[topic].partitions
    numbers = [int(partition)] if partition else sorted(found)
    where = [TopicPartition(topic, number, told.to_offset or 0) for number in numbers]
    if told.to_earliest:
        spec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # undeclared
        firsts = admin.list_offsets(dict.fromkeys(where, spec))
        where = [
            TopicPartition(topic, one.partition, first.result(_WAIT_S).offset)
            for one, first in firsts.items()
        ]
    asked = ConsumerGroupTopicPartitions(told.group, where)
    return admin.alter_consumer_group_offsets([asked]).values()


if __name__ == "__main__":
    main()
