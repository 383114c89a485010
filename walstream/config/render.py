"""The effective configuration as a file that can be read again, without its secrets."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from walstream.config.model import Config
from walstream.config.problem import PRIVATE_TABLES
from walstream.config.secret import Secrets, mask_value


def mask(config: Config) -> str:
    """TOML with every key; *** stands for what is secret."""
    document = config.model_dump(mode="json", exclude_none=True)
    return "\n".join(_lines(_masked(document, config.secrets), ())).lstrip() + "\n"


def schema() -> dict[str, Any]:
    """JSON schema of a configuration file, for editors."""
    # this mode shows defaults as they are written: "10GiB", not a number
    return Config.model_json_schema(mode="serialization")


def _masked(table: Mapping[str, Any], secrets: Secrets, *, scrub: bool = False) -> Any:
    shown: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            shown[key] = _masked(value, secrets, scrub=key in PRIVATE_TABLES)
        elif isinstance(value, str):
            masked = mask_value(key, value)
            shown[key] = secrets.scrub(masked) if scrub else masked
        else:
            shown[key] = value
    return shown


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {k: v for k, v in table.items() if not isinstance(v, Mapping)}
    tables = {k: v for k, v in table.items() if isinstance(v, Mapping)}
    if path and (values or not tables):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for key in sorted(values, key=lambda key: key != "kind"):  # it says what is read
        yield f"{_key(key)} = {_value(values[key])}"
    for key, child in tables.items():
        yield from _lines(child, (*path, key))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    """Write it as JSON does, whose texts are TOML's but for DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
