"""Where a polled table stands: its schema, as a topic's template knows it, and name."""


def place(source: str, table: str) -> tuple[str, str]:
    """Part a configured name; without a schema the source's name stands for it."""
    schema, _, name = table.rpartition(".")
    return schema or source, name
