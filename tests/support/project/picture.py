"""docs/packages.svg, drawn from the imports: `make picture` writes it.

The rows are import-linter's layers, the sentences the packages' docstrings, the numbers
imports from module to module. A test compares the picture with this.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import grimp

from tests.support.project.own_coverage import ROOT

PICTURE: Final = ROOT / "docs" / "packages.svg"
LOOSE: Final = "loose modules"  # all that stand loose, as one row
_SENTENCE: Final = "The words that everybody uses: {}"
_LEGEND: Final = (
    "A number: so many imports lead from the row's package to the column's."
    " Left of the diagonal there is none: no package imports one above it."
)
_LEFT, _CELL, _ROW, _TOP, _GAP = 490, 34, 38, 92, 6
# a page's background is not known: no shape has one, and texts follow the reader's mode
_STYLE: Final = """
text{font:13px system-ui,sans-serif;fill:#1f2328}
.name{font-weight:600}.note{font-size:11px;fill:#59636e}
.layer{fill:none;stroke:#8c959f}.self{fill:#8c959f}.import{fill:#1f883d}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}
.layer{stroke:#6e7681}.self{fill:#6e7681}.import{fill:#2ea043}}
"""

Imports = Mapping[tuple[str, str], int]
"""By package that imports and package that is imported: so many modules of modules."""


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest first; the loose modules last."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    first = rules["tool"]["importlinter"]["contracts"][0]
    named = ([name.strip() for name in row.split("|")] for row in first["layers"])
    packages = [[name for name in row if _is_package(name)] for row in named]
    return [*filter(None, packages), [LOOSE]]


def imports() -> Imports:
    """Return how many imports lead from one package into another."""
    graph = grimp.build_graph("walstream", cache_dir=None)
    found = Counter[tuple[str, str]]()
    for importer in graph.modules - {"walstream"}:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = _row_of(importer), _row_of(imported)
            found[pair] += pair[0] != pair[1]
    return +found


def draw(rows: Sequence[Sequence[str]], counts: Imports) -> str:
    """Return the whole SVG: a row a package, and a cell for what it imports."""
    names = [name for row in rows for name in row]
    lines = [_column(number, name) for number, name in enumerate(names)]
    top, number = _TOP, 0
    for row in rows:
        height = _ROW * len(row)
        lines.append(_box("layer", 4, top, _LEFT - 12, height))
        for name in row:
            lines += _package(name, number, top, names, counts)
            top, number = top + _ROW, number + 1
        top += _GAP
    width = _LEFT + _CELL * len(names) + 60
    lines.append(_text(4, top + 14, _LEGEND, "note"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + 22}"'
        f' width="{width}" role="img" aria-label="the packages of walstream in layers">'
        f"<style>{_STYLE}</style>\n" + "\n".join(lines) + "\n</svg>\n"
    )


def _package(
    name: str, number: int, top: int, names: Sequence[str], counts: Imports
) -> Iterator[str]:
    yield _text(12, top + 16, name, "name")
    yield _text(12, top + 31, _sentence(name), "note")
    for column, other in enumerate(names):
        left = _LEFT + column * _CELL
        if count := counts.get((name, other)):
            shade = min(0.15 + count / 50, 0.7)
            style = f' fill-opacity="{shade:.2f}"'
            yield _box("import", left, top + 3, _CELL - 3, _ROW - 6, style)
            yield _text(left + _CELL / 2 - 1, top + 24, str(count), "", "middle")
        elif column == number:
            yield _box("self", left + 11, top + 14, 9, 9)


def _column(number: int, name: str) -> str:
    left = _LEFT + number * _CELL + _CELL / 2
    turned = f' transform="rotate(-50 {left:.0f} {_TOP - 8})"'
    return _text(left, _TOP - 8, name, "", "", turned)


def _sentence(name: str) -> str:
    if name == LOOSE:
        loose = sorted(path.stem for path in (ROOT / "walstream").glob("[a-z]*.py"))
        return _SENTENCE.format(", ".join(loose))
    source = (ROOT / "walstream" / name / "__init__.py").read_text("utf-8")
    said = ast.get_docstring(ast.parse(source)) or ""
    return said.partition("\n")[0].rstrip(".").replace("`", "")


def _is_package(name: str) -> bool:
    return (ROOT / "walstream" / name / "__init__.py").exists()


def _row_of(module: str) -> str:
    name = module.split(".")[1] if "." in module else LOOSE
    return name if _is_package(name) else LOOSE


def _box(  # noqa: PLR0913, PLR0917 - as SVG has it
    kind: str, x: float, y: float, width: float, height: float, more: str = ""
) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" rx="3"'
    return f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" {size}{more}/>'


def _text(  # noqa: PLR0913, PLR0917 - likewise
    x: float, y: float, words: str, kind: str = "", anchor: str = "", more: str = ""
) -> str:
    attributes = f' class="{kind}"' if kind else ""
    attributes += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{attributes}{more}>{escape(words)}</text>'


def main() -> None:
    Path(PICTURE).write_text(draw(layers(), imports()), encoding="utf-8")
    sys.stdout.write(f"{PICTURE} is drawn\n")


if __name__ == "__main__":
    main()
