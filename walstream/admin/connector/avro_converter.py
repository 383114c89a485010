"""Avro converters of Confluent and of Apicurio: their registry as walstream's."""

import re
from collections.abc import Mapping
from typing import Final

from walstream.admin.connector.draft import Draft

CONFLUENT: Final = "io.confluent.connect.avro.AvroConverter"
APICURIO: Final = "io.apicurio.registry.utils.converter.AvroConverter"
SIDES: Final = ("key.converter", "value.converter")
_URLS: Final = {CONFLUENT: "schema.registry.url", APICURIO: "apicurio.registry.url"}
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
    "records have the id of a schema's content in four bytes, as with as-confluent and "
    "use-id=contentId; with other settings readers of older records need both"
)
_LOGINS: Final = ("basic.auth", "bearer.auth", "schema.registry.ssl", "apicurio.auth")
_LOGIN: Final = "write the login in [sinks.kafka.registry.client]"
_AVRO: Final = 'encoding = "avro"'


def translate(draft: Draft) -> bool:
    """Write encoding and registry; False: keys or values are not in Avro."""
    names = {draft.get(side) for side in SIDES}
    if len(names) != 1 or not names & _URLS.keys():
        return False
    (name,) = names
    draft.tables["sink"]["encoding"] = "avro"
    remark = _AS_CONFLUENTS if name == APICURIO else ""
    for side in SIDES:
        draft.became(side, _AVRO, remark)
        for key in draft.file.entries:
            if key.startswith(f"{side}."):
                _option(draft, key, key.removeprefix(f"{side}."), _URLS[name])
    if not draft.tables["registry"].get("url"):
        draft.decide(SIDES[1], f"no {_URLS[name]}: write the registry's url")
    return True


def _option(draft: Draft, key: str, option: str, url: str) -> None:
    value = draft.get(key)
    if option == url:
        _url(draft, key, value)
    elif option in _REGISTERS:
        draft.put(key, "registry", "auto_register", value.lower() != "false")
    elif option.endswith("subject.name.strategy"):
        _strategy(draft, key, value)
    elif option.startswith(_LOGINS):
        draft.decide(key, _LOGIN)
    elif option in {"apicurio.registry.as-confluent", "enhanced.avro.schema.support"}:
        draft.became(key, _AVRO)
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
