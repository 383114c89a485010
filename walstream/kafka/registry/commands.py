"""Commands that repair a subject, as an operator runs them: no login is in them."""

import json
import shlex
from typing import Final
from urllib.parse import quote

from walstream.config.registry import Registry
from walstream.formats.encodings.subject import SubjectSchema

_TYPE: Final = "Content-Type: application/vnd.schemaregistry.v1+json"


def relax(told: Registry, subject: str) -> str:
    """Return the command that lets a subject take any next version."""
    return _curl(told, "PUT", f"config/{_part(subject)}", {"compatibility": "NONE"})


def register(told: Registry, schema: SubjectSchema) -> str:
    """Return the command that registers a schema."""
    body = {"schema": schema.text, "schemaType": schema.kind}
    return _curl(told, "POST", f"subjects/{_part(schema.subject)}/versions", body)


def _part(subject: str) -> str:
    return quote(subject, safe="")


def _curl(told: Registry, method: str, path: str, body: object) -> str:
    where = f"{told.identity.partition(',')[0]}/{path}"
    words = ["curl", "-X", method, "-H", _TYPE, "-d", json.dumps(body), where]
    return shlex.join(words)
