"""docs/demo.svg, a recording of a real `make demo`: `make recording` writes it.

The demo runs in a pseudo-terminal. Its output becomes frames of a screen, and these an
SVG that CSS alone animates. GitHub shows it, since it has no scripts.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from tests.support.project.own_coverage import ROOT

RECORDING: Final = ROOT / "docs" / "demo.svg"
COLUMNS, ROWS = 100, 26
_SECONDS: Final = "15"  # of the demo's load
_FRAME_S, _LONGEST_WAIT_S, _HOLD_S = 0.25, 1.0, 8.0
_WIDTH, _HEIGHT, _MARGIN = 8.4, 18, 14
_TOKEN: Final = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")
_SPINNER: Final = re.compile(r"[\u2800-\u28ff]")
_STYLES: Final = {
    "1": "b",
    "2": "d",
    "31": "r",
    "32": "g",
    "33": "y",
    "36": "c",
}
_CSS: Final = """
.back{fill:#0d1117;stroke:#30363d}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
text{fill:#e6edf3;white-space:pre}
.b{font-weight:700}.d{fill:#8b949e}.r{fill:#ff7b72}
.g{fill:#3fb950}.y{fill:#d29922}.c{fill:#39c5cf}
"""

Run = tuple[str, str]
"""A text, and the classes of its style."""
Row = tuple[Run, ...]
Frame = tuple[float, list[Row]]
"""For how many seconds, and what is on the screen."""


@dataclass(frozen=True)
class Output:
    at_s: float
    text: str


class Screen:
    """The part of a terminal that rich uses: lines, colours, and a line written again.

    A carriage return needs nothing: rich erases a line that it writes again.
    """

    def __init__(self) -> None:
        self._lines: list[list[Run]] = [[]]
        self._row = 0
        self._style: list[str] = []

    def write(self, text: str) -> None:
        for arguments, command, control, words in _TOKEN.findall(text):
            if words:
                self._lines[self._row].append((words, " ".join(self._style)))
            elif control == "\n":
                self._row += 1
                if self._row == len(self._lines):
                    self._lines.append([])
            elif command == "A":
                self._row = max(0, self._row - int(arguments or 1))
            elif command == "K":
                self._lines[self._row] = []
            elif command == "m":
                self._select(arguments)

    def rows(self, count: int) -> list[Row]:
        """Return the last lines, as many as fit."""
        lines = self._lines if self._lines[-1] else self._lines[:-1]
        return [tuple(_joined(line)) for line in lines[-count:]]

    def _select(self, arguments: str) -> None:
        for code in (arguments or "0").split(";"):
            if code == "0":
                self._style = []
            elif code in _STYLES:
                self._style.append(_STYLES[code])


def record(command: Sequence[str]) -> list[Output]:
    """Run a command in a pseudo-terminal and return what it wrote, and when."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES="40")
        os.environ.pop("NO_COLOR", None)
        os.execv(command[0], list(command))  # noqa: S606 - the project's own command
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    began, written = time.monotonic(), list[Output]()
    while data := _read(terminal):
        text = data.decode("utf-8", "replace")
        written.append(Output(time.monotonic() - began, text))
    _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command)} ended with {code}: nothing was recorded")
    return written


def frames(written: Sequence[Output]) -> list[Frame]:
    """Return each screen that stays for a moment, and for how long; the last is held.

    While nothing but a spinner turns, a second stands for the whole wait.
    """
    screen, since_s, shown = Screen(), 0.0, list[Frame]()
    for one, following in zip(written, [*written[1:], None], strict=True):
        screen.write(one.text)
        rows = screen.rows(ROWS)
        if following is None:
            shown.append((_HOLD_S, rows))
        elif following.at_s - since_s >= _FRAME_S:
            lasts_s, since_s = following.at_s - since_s, following.at_s
            if shown and _without_spinner(shown[-1][1]) == _without_spinner(rows):
                lasts_s += shown.pop()[0]
            shown.append((min(lasts_s, _LONGEST_WAIT_S), rows))
    return shown


def _without_spinner(rows: Sequence[Row]) -> list[str]:
    return [_SPINNER.sub("", "".join(words for words, _ in row)) for row in rows]


def draw(shown: Sequence[Frame]) -> str:
    """Return the whole SVG. A line is written once, and each frame refers to it."""
    names: dict[Row, str] = {}
    for _, rows in shown:
        for row in rows:
            names.setdefault(row, f"l{len(names)}")
    width = round(COLUMNS * _WIDTH + 2 * _MARGIN)
    height = ROWS * _HEIGHT + 2 * _MARGIN
    total_s, at_s = sum(lasts_s for lasts_s, _ in shown), 0.0
    steps, groups = list[str](), list[str]()
    for number, (lasts_s, rows) in enumerate(shown):
        steps.append(
            f"{at_s / total_s:.3%}{{transform:translateX(-{number * width}px)}}"
        )
        at_s += lasts_s
        uses = "".join(
            f'<use href="#{names[row]}" y="{_MARGIN + (place + 1) * _HEIGHT - 5}"/>'
            for place, row in enumerate(rows)
            if row
        )
        groups.append(
            f'<g transform="translate({number * width + _MARGIN} 0)">{uses}</g>'
        )
    last = f"transform:translateX(-{(len(shown) - 1) * width}px)"
    moves = (
        f".film{{{last};animation:film {total_s:.1f}s steps(1,end) infinite}}"
        f"@keyframes film{{{''.join(steps)}100%{{{last}}}}}"
        "@media(prefers-reduced-motion:reduce){.film{animation:none}}"
    )
    lines = "\n".join(_line(name, row) for row, name in names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" role="img" aria-label="a recording of walstream demo">'
        f"<style>{_CSS}{moves}</style>\n<defs>\n{lines}\n</defs>\n"
        f'<rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}"'
        ' rx="8"/>\n<g class="film">\n' + "\n".join(groups) + "\n</g>\n</svg>\n"
    )


def _line(name: str, row: Row) -> str:
    column, parts = 0, list[str]()
    for words, style in row:
        attributes = f' x="{column * _WIDTH:.1f}"' + (
            f' class="{style}"' if style else ""
        )
        if words.strip():
            parts.append(f"<tspan{attributes}>{escape(words.rstrip())}</tspan>")
        column += len(words)
    return f'<text id="{name}">{"".join(parts)}</text>'


def _joined(line: Sequence[Run]) -> Iterator[Run]:
    """Yield a line's texts, those of one style that follow each other as one."""
    before: Run | None = None
    for words, style in line:
        if before is not None and before[1] == style:
            before = before[0] + words, style
            continue
        if before is not None:
            yield before
        before = words, style
    if before is not None:
        yield before


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's way to say that the other side is closed
        return b""


def main() -> None:
    command = Path(sys.executable).with_name("walstream")
    written = record([str(command), "demo", "--seconds", _SECONDS])
    RECORDING.write_text(draw(frames(written)), encoding="utf-8")
    sys.stdout.write(f"{RECORDING} is drawn\n")


if __name__ == "__main__":
    main()
