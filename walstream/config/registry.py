"""[sinks.NAME.registry]: the registry of records' schemas."""

from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from walstream.config.field import Properties, Section

Compatibility = Literal[
    "",
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
]
SUBJECT: Final = "{subject}"
STOP: Final = "stop"


class Registry(Section):
    url: str = Field(
        default="",
        description="Address of the registry, as Confluent's clients take it; several "
        "by comma. Apicurio's is http://HOST:8080/apis/ccompat/v7.",
    )
    subjects: Literal["topic", "record", "topic_record"] = Field(
        default="topic",
        description="Names of subjects: topic (TOPIC-key, TOPIC-value), record (the "
        "schema's own name) or topic_record (both).",
    )
    auto_register: bool = Field(
        default=True,
        description="Register what is not there (auto.register.schemas); false looks "
        "up, and waits for another client to register it.",
    )
    compatibility: Compatibility = Field(
        default="",
        description="Compatibility that new subjects are given, such as BACKWARD or "
        'FULL; "" leaves them the registry\'s own.',
    )
    optional: Literal["catalog", "all"] = Field(
        default="catalog",
        description="Which fields may be null: catalog, those of columns without NOT "
        "NULL, as Debezium has it; all, without defaults, so that each new column or "
        "dropped one is compatible.",
    )
    on_incompatible: str = Field(
        default=STOP,
        description="What happens when a table's new schema is refused: stop, or the "
        'name of another subject for it, as "{subject}-2".',
    )
    client: Properties = Field(
        default={},
        repr=False,
        description="Properties of Confluent's client: basic.auth.user.info, "
        "bearer.auth.…, ssl.…, proxy, timeout.",
    )
    insecure: bool = Field(
        default=False,
        description="Allow a registry on another host without verified TLS.",
    )

    @property
    def urls(self) -> list[str]:
        """Its addresses, one by one."""
        return [one.strip() for one in self.url.split(",") if one.strip()]

    @property
    def identity(self) -> str:
        """Which registry it is, without who logs in."""
        shown = []
        for one in self.urls:
            parts = urlsplit(one)
            host = parts.netloc.rpartition("@")[2]
            shown.append(f"{parts.scheme}://{host}{parts.path.rstrip('/')}")
        return ",".join(shown)
