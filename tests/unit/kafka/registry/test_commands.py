"""Commands that are printed: they do what they say, and tell no login."""

import shlex
import subprocess

from tests.support.servers.faulty_registry import faulty_registry
from walstream.config.registry import Registry
from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.registry.commands import register, relax

SCHEMA = SubjectSchema("a/b 'c'-value", '{"type":"record","name":"A","fields":[]}')


def test_a_command_does_what_it_says() -> None:
    with faulty_registry() as server:
        told = Registry(url=f"{server.url}, http://other")
        for command in (register(told, SCHEMA), relax(told, SCHEMA.subject)):
            subprocess.run(shlex.split(command), check=True, capture_output=True)
        assert server.texts == [SCHEMA.text]
        assert list(server.subjects) == [SCHEMA.subject]
        assert [(method, path.split("/")[1]) for method, path, _ in server.asked] == [
            ("POST", "subjects"),
            ("PUT", "config"),
        ]


def test_no_login_is_in_a_command() -> None:
    told = Registry(url="http://me:secret@r:8081/api/")
    assert "http://r:8081/api/config/t-value" in relax(told, "t-value")
    assert "secret" not in relax(told, "t-value") + register(told, SCHEMA)
