"""An installed package that adds to walstream: its metadata and its module, by hand."""

from pathlib import Path

_EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def install(folder: Path, group: str, entry: str, text: str) -> Path:
    """Put a module where Python finds it; `entry` is `name = module:what`."""
    module = entry.partition("=")[2].partition(":")[0].strip()
    (folder / f"{module}.py").write_text(text, "utf-8")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    return folder


def example(name: str) -> str:
    """Read one of docs/examples."""
    return (_EXAMPLES / f"{name}.py").read_text("utf-8")
