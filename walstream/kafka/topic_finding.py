"""Findings about topics, grouped: one finding names several topics.

A thousand topics with the same fault are one finding. A command names the first few of
them: each line of it is for one topic.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from walstream.config.librdkafka import ClientProperties
from walstream.errors import NO_REPAIR, Repair, WalstreamError
from walstream.finding import Finding, Severity
from walstream.kafka.topic_creation import Creation

_NAMED: Final = 3
_TOPIC: Final = "{topic}"
_LOGIN: Final = "admin.properties"


@dataclass(frozen=True, slots=True)
class Remark:
    """Remark about one topic; "{topic}" is its name in the command."""

    code: str
    severity: Severity
    what: str  # what the topic does: "has 1 replica"
    why: str
    repair: Repair = NO_REPAIR
    exit_code: int = 0

    @classmethod
    def of(cls, error: WalstreamError, code: str, *, what: str, repair: Repair) -> Self:
        """Make the remark of what would stop `run` with this error."""
        return cls(
            code,
            Severity.STOP,
            what or str(error.args[0]),
            error.hint,
            repair,
            error.exit_code,
        )


def grouped(remarks: Iterable[tuple[str, Remark]]) -> list[Finding]:
    """Make one finding of equal remarks, in the order of the first of each."""
    topics: dict[Remark, list[str]] = {}
    for topic, remark in remarks:
        topics.setdefault(remark, []).append(topic)
    return [_finding(remark, names) for remark, names in topics.items()]


def listed(names: Sequence[str]) -> str:
    """Name topics, however many: the first few, and the number of the others."""
    more = len(names) - _NAMED
    others = f" and {more} more" if more > 0 else ""
    return f"topic{'s' * (len(names) > 1)} {', '.join(names[:_NAMED])}{others}"


def _finding(remark: Remark, names: Sequence[str]) -> Finding:
    several = len(names) > 1
    return Finding(
        remark.code,
        listed(names),
        f"{'each ' * several}{remark.what}",
        remark.why,
        remark.severity,
        _repair(remark.repair, names),
        remark.exit_code,
    )


def _repair(repair: Repair, names: Sequence[str]) -> Repair:
    if _TOPIC not in repair.command:
        return repair
    lines = [repair.command.replace(_TOPIC, name) for name in names[:_NAMED]]
    more = len(names) - _NAMED
    rest = f"the same for the other {more}" if more > 0 else ""
    then = "; ".join(filter(None, (rest, repair.then)))
    return replace(repair, command="\n".join(lines), then=then)


@dataclass(frozen=True, slots=True)
class Tools:
    """Kafka's own commands, which repair topics."""

    servers: str
    user: str = ""  # of a login with a name; ACLs are given to it
    secured: bool = False

    @classmethod
    def of(cls, properties: ClientProperties, servers: str) -> Self:
        """Read from a producer's properties who it is to the brokers."""
        protocol = str(properties.get("security.protocol", "plaintext")).lower()
        named = protocol.startswith("sasl")
        user = str(properties.get("sasl.username", "")) if named else ""
        return cls(servers, user, secured=protocol != "plaintext")

    def set(self, then: str = "", **settings: object) -> Repair:
        """Set keys of a topic's configuration; `_` stands for their dots."""
        pairs = ",".join(
            f"{key.replace('_', '.')}={value}" for key, value in settings.items()
        )
        what = f"--alter --entity-type topics --entity-name {_TOPIC}"
        return self._repair("kafka-configs.sh", f"{what} --add-config {pairs}", then)

    def create(self, creation: Creation, name: str) -> Repair:
        """Create a topic as the sink would create that of this name."""
        what = f"--create --topic {_TOPIC}"
        if partitions := creation.partitions_of(name):
            what += f" --partitions {partitions}"
        if creation.replication:
            what += f" --replication-factor {creation.replication}"
        for key, value in creation.config_of(name).items():
            what += f" --config {shlex.quote(f'{key}={value}')}"
        return self._repair("kafka-topics.sh", what, "walstream run")

    def grant(self, *operations: str) -> Repair:
        """Allow the producer's user to do this with a topic."""
        return self._grant(operations, f"--topic {_TOPIC}", "")

    def grant_transactions(self, prefix: str) -> Repair:
        """Allow it to write in transactions whose ids begin so."""
        which = f"--transactional-id {shlex.quote(prefix)}"
        what = f"{which} --resource-pattern-type prefixed"
        of = f" on transactional ids that begin with {prefix!r}"
        return self._grant(("WRITE", "DESCRIBE"), what, of)

    def _grant(self, operations: Sequence[str], which: str, of: str) -> Repair:
        if not self.user:
            rights = " and ".join(operations)
            return Repair(then=f"grant {rights}{of} to the producer's user")
        what = f"--add --allow-principal {shlex.quote(f'User:{self.user}')}"
        for operation in operations:
            name = "".join(part.capitalize() for part in operation.split("_"))
            what += f" --operation {name}"
        return self._repair("kafka-acls.sh", f"{what} {which}", "walstream run")

    def grow(self, partitions: int) -> Repair:
        """Return a topic more partitions."""
        what = f"--alter --topic {_TOPIC} --partitions {partitions}"
        return self._repair("kafka-topics.sh", what, "walstream run")

    def delete(self, then: str) -> Repair:
        """Delete a topic, with its records."""
        return self._repair("kafka-topics.sh", f"--delete --topic {_TOPIC}", then)

    def offsets(self, group: str, where: str, to: str) -> Repair:
        """Set a group's offsets of a topic, or TOPIC:PARTITION; nobody may be in it."""
        what = f"--group {shlex.quote(group)} --topic {shlex.quote(where)}"
        return self._repair(
            "kafka-consumer-groups.sh",
            f"{what} --reset-offsets {to} --execute",
            "walstream run",
        )

    def _repair(self, tool: str, what: str, then: str) -> Repair:
        command = f"{tool} --bootstrap-server {shlex.quote(self.servers)} {what}"
        if self.secured:
            command += f" --command-config {_LOGIN}"
            login = f"{_LOGIN} holds the login of a user who may do that"
            then = "; ".join(filter(None, (login, then)))
        return Repair(command=command, then=then)
