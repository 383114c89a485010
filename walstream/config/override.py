"""WALSTREAM__SOURCES__APP__SLOT=x: single keys, set from the environment.

Names are matched with the file's own whatever their case, and - and . may be written _,
since a shell's variables hold neither. A name that the file does not have is taken in
lower case; in the tables of properties its _ become the dots that such keys have.
"""

from collections.abc import Mapping
from typing import Any, Final

from walstream.config.field import EnvironmentText
from walstream.config.problem import Path, Problem

PREFIX: Final = "WALSTREAM__"
DOTTED_TABLES: Final = frozenset({"producer", "consumer", "conf", "topic_config"})


def apply(document: dict[str, Any], environment: Mapping[str, str]) -> list[Problem]:
    """Set the overrides in the document; the problems are those that could not be."""
    problems = []
    for variable in sorted(environment):
        if variable.startswith(PREFIX):
            steps = variable.removeprefix(PREFIX).split("__")
            complaint = _set(document, steps, environment[variable])
            if complaint:
                problems.append(Problem((variable,), complaint))
    return problems


def _set(document: dict[str, Any], steps: list[str], value: str) -> str:
    if not all(steps):
        return "has an empty name in it: write WALSTREAM__SECTION__KEY"
    table: dict[str, Any] = document
    path: Path = ()
    for step in steps[:-1]:
        name = _name(step, table, path)
        if name is None:
            return f"fits several keys that differ in case only: {step}"
        path = (*path, name)
        child = table.setdefault(name, {})
        if not isinstance(child, dict):
            return f"goes into {'.'.join(map(str, path))}, which is not a table"
        table = child
    name = _name(steps[-1], table, path)
    if name is None:
        return f"fits several keys that differ in case only: {steps[-1]}"
    table[name] = EnvironmentText(value)
    return ""


def _name(step: str, table: Mapping[str, Any], path: Path) -> str | None:
    """Find the key that is meant; None where two could be."""
    fitting = [name for name in table if _folded(name) == _folded(step)]
    if step.lower() in fitting:
        return step.lower()
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        return None
    dotted = bool(path) and path[-1] in DOTTED_TABLES
    return step.lower().replace("_", ".") if dotted else step.lower()


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_").replace(".", "_")
