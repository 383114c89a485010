"""Types of a row's columns, of the text of a JSON Schema: for people."""

from typing import Any, Final

from walstream.formats.encodings.json_schema.schema_reader import Told, parsed

_ROWS: Final = ("after", "before", "new", "old", "data")


def json_schema_fields(text: str) -> dict[str, tuple[str, bool]]:
    """Return the types of a row's columns, each as one that has a default.

    No registry asks for one. Raises KeyError or ValueError for another text.
    """
    schema: Told = parsed(text).schema
    fields: dict[str, Any] = {one["field"]: one for one in schema["fields"]}
    for name in _ROWS:
        if "fields" in fields.get(name, {}):
            fields = {one["field"]: one for one in fields[name]["fields"]}
            break
    return {name: (_shown(one), True) for name, one in fields.items()}


def _shown(told: Told) -> str:
    kind = str(told.get("name") or told.get("type", "any")).rpartition(".")[2]
    parameters = told.get("parameters", {})
    if "scale" in parameters:
        precision = parameters.get("connect.decimal.precision", "")
        kind = f"{kind}({precision},{parameters['scale']})"
    elif parameters:
        kind = f"{kind}({', '.join(parameters.values())})"
    if "items" in told and "name" not in told:
        kind = f"array of {_shown(told['items'])}"
    return f"null or {kind}" if told.get("optional") else kind
