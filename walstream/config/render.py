"""The effective configuration as a file that can be read again, without its secrets."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from walstream.config.model import Config
from walstream.config.oauth import PROPERTY
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
        if key == PROPERTY and isinstance(value, str):
            continue  # the section says it
        if isinstance(value, Mapping):
            shown[key] = _masked(value, secrets, scrub=key in PRIVATE_TABLES)
        elif _is_array(value):
            shown[key] = [_masked(one, secrets, scrub=scrub) for one in value]
        elif isinstance(value, str):
            masked = mask_value(key, value)
            shown[key] = secrets.scrub(masked) if scrub else masked
        else:
            shown[key] = value
    return shown


def _lines(
    table: Mapping[str, Any], path: tuple[str, ...], *, heads: bool = True
) -> Iterator[str]:
    tables = {k: v for k, v in table.items() if _is_table(v) or _is_array(v)}
    values = {k: v for k, v in table.items() if k not in tables}
    if path and heads and (values or not tables):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for key in sorted(values, key=lambda key: key != "kind"):  # it says what is read
        yield f"{_key(key)} = {_value(values[key])}"
    for key, child in tables.items():
        if _is_table(child):
            yield from _lines(child, (*path, key))
            continue
        for one in child:
            yield f"\n[[{'.'.join(map(_key, (*path, key)))}]]"
            yield from _lines(one, (*path, key), heads=False)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_array(value: Any) -> bool:
    """Return whether it is an array of tables."""
    return isinstance(value, list) and bool(value) and _is_table(value[0])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    """Write it as JSON does, whose texts are TOML's but for DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
