"""[sinks.NAME.messages]: logical messages of PostgreSQL as records."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from walstream.config.debezium import FORMATS
from walstream.config.field import MessageKey, MessageTopic, Section


class Messages(Section):
    prefixes: list[str] = Field(
        default=[],
        description="Messages of pg_logical_emit_message that become records, by their "
        "prefix: names, or patterns of * and ?.",
    )
    topic: MessageTopic = Field(
        default="",
        description="Their topic, of {source} and {prefix}; default: {prefix}, and of "
        "the formats debezium NAME.message.",
    )
    key: MessageKey = Field(
        default="",
        description="JSON pointer to the record's key in a content that is JSON, such "
        'as "/id"; "" for no key.',
    )
    form: Literal["", "content", "debezium"] = Field(
        default="",
        description="Value of such a record: content, the message's bytes, or "
        "debezium, its record of a message; default: by the sink's format.",
    )
    max_topics: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="Most topics that prefixes may name: any role may write a message.",
    )

    def form_in(self, sink_format: str) -> str:
        """Return the form in a sink of this format: content or debezium."""
        return self.form or ("debezium" if sink_format in FORMATS else "content")

    def topic_in(self, sink_format: str, source: str, name: str) -> str:
        """Return the topic's template, of {prefix}; `name` is Debezium's."""
        topic = self.topic.replace("{source}", source)
        if topic:
            return topic
        by_debezium = self.form_in(sink_format) == "debezium"
        return f"{name}.message" if by_debezium else "{prefix}"

    def topics_in(self, sink_format: str, source: str, name: str) -> Iterator[str]:
        """Yield what its topics are, as names and patterns."""
        template = self.topic_in(sink_format, source, name)
        for prefix in self.prefixes:
            yield template.replace("{prefix}", prefix)
