"""Converters of Confluent and of Apicurio: encoding and registry as walstream's."""

import re
from collections.abc import Mapping
from typing import Final

from walstream.admin.connector.draft import Draft

CONFLUENT: Final = "io.confluent.connect.avro.AvroConverter"
CONFLUENT_JSON: Final = "io.confluent.connect.json.JsonSchemaConverter"
APICURIO: Final = "io.apicurio.registry.utils.converter.AvroConverter"
SIDES: Final = ("key.converter", "value.converter")
_CONVERTERS: Final = {
    CONFLUENT: ("avro", "schema.registry.url"),
    CONFLUENT_JSON: ("json_schema", "schema.registry.url"),
    APICURIO: ("avro", "apicurio.registry.url"),
}
"""Their encodings, and the option that names a registry."""
_REGISTERS: Final = frozenset(
    {"auto.register.schemas", "apicurio.registry.auto-register"}
)
_STRATEGIES: Final[Mapping[str, str]] = {
    "TopicNameStrategy": "topic",
    "RecordNameStrategy": "record",
    "TopicRecordNameStrategy": "topic_record",
}
_OWN_API: Final = re.compile(r"/apis/registry/v\d+/?$|/api/?$")
_AS_CONFLUENTS: Final = (
    "records have the id of a schema's content in four bytes, as with as-confluent, "
    "use-id=contentId and headers.enabled=false; with other settings readers of older "
    "records need both"
)
_WIRE: Final = frozenset(
    {
        "apicurio.registry.as-confluent",
        "apicurio.registry.headers.enabled",
        "apicurio.registry.use-id",
        "enhanced.avro.schema.support",
    }
)
"""Options of what walstream writes in one way, which the remark tells."""
_LOGINS: Final = ("basic.auth", "bearer.auth", "schema.registry.ssl", "apicurio.auth")
_LOGIN: Final = "write the login in [sinks.kafka.registry.client]"
_DECIMAL: Final = (
    "walstream writes decimals in base64, as it does without this option, and says so "
    "in the schema"
)


def translate(draft: Draft) -> bool:
    """Write encoding and registry; False: keys or values have another converter."""
    names = {draft.get(side) for side in SIDES}
    if len(names) != 1 or not names & _CONVERTERS.keys():
        return False
    (name,) = names
    encoding, url = _CONVERTERS[name]
    draft.tables["sink"]["encoding"] = encoding
    became = f'encoding = "{encoding}"'
    remark = _AS_CONFLUENTS if name == APICURIO else ""
    for side in SIDES:
        draft.became(side, became, remark)
        for key in draft.file.entries:
            if key.startswith(f"{side}."):
                _option(draft, key, key.removeprefix(f"{side}."), url, became)
    if not draft.tables["registry"].get("url"):
        draft.decide(SIDES[1], f"no {url}: write the registry's url")
    return True


def _option(draft: Draft, key: str, option: str, url: str, became: str) -> None:
    value = draft.get(key)
    if option == url:
        _url(draft, key, value)
    elif option in _REGISTERS:
        draft.put(key, "registry", "auto_register", value.lower() != "false")
    elif option.endswith("subject.name.strategy"):
        _strategy(draft, key, value)
    elif option.startswith(_LOGINS):
        draft.decide(key, _LOGIN)
    elif option in _WIRE:
        draft.became(key, became)
    elif option == "decimal.format":
        if value.lower() == "base64":
            draft.became(key, became)
        else:
            draft.decide(key, _DECIMAL)
    else:
        draft.decide(key, "walstream has no such option of a converter")


def _url(draft: Draft, key: str, value: str) -> None:
    known = draft.tables["registry"].get("url")
    made = _OWN_API.sub("/apis/ccompat/v7", value)
    if known not in {None, made}:
        draft.decide(key, f"keys and values have one registry: {known}")
        return
    remark = "its API for Confluent's clients" if made != value else ""
    draft.put(key, "registry", "url", made, remark)


def _strategy(draft: Draft, key: str, value: str) -> None:
    found = _STRATEGIES.get(value.rpartition(".")[2])
    known = draft.tables["registry"].get("subjects", found)
    if found is None or known != found:
        draft.decide(key, "subjects of keys and values are named by topic or record")
    else:
        draft.put(key, "registry", "subjects", found)
