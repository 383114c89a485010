"""Texts of the product are plain English: in messages, and in docstrings."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import pytest

from tests.unit.test_house import ROOT, modules

IDIOM: Final = {
    r"(?<!`)\banew\b": "again, from scratch",
    r"\bsomebody\b": "another user, another client, a person",
    r"\b(?:it stands|they stand)\b(?! for)": "as printed, as it is",
    r"\b(?:that|what) (?:is|are|was|were) there\b": "existing",
    r"(?<![Tt]here )\bis no (?!longer\b|more than\b)": "is not a",
    r"\b(?:cannot|to) be had\b": "is in use, is not available",
    r"\b(?:is|are|was|were|do|does) no more\b(?! than)": "no longer",
    r"\bany more\b": "no longer",
    r"\bof one's own\b": "a separate, custom",
    r"\bbe sorry\b": "regret",
    r"\b(?:cannot|could not|can not) be told\b": "is not known",
    r"\bfor want of\b": "without, because … is missing",
    r"\bbefalls?\b": "happens to",
    r"\bmend(?:s|ed)?\b": "repair, fix",
    r"\bwho asks\b": "the client",
    r"\bgives up\b": "stops, drops",
    r"\bdelivered whole\b": "fully delivered",
}
"""Regular expressions of the idiom that readers had to translate, and what says it."""

IN_MESSAGES: Final = {
    r"\b(?:go|goes|going|went) on\b": "continue",
    r"\bpass(?:ed|es)? over\b": "skip",
    r"\b(?:given|gave|gives?)(?: \w+)? up\b": "stop, skip, remove",
    r"\bheld up\b": "is blocked",
    r"\bstill to come\b": "is in the future",
    r"\bis there already\b": "exists already",
    r"\bout of step\b": "at different times",
    r"\bspelt\b": "written",
    r"\btake[ns]? (?:\w+ )*(?:as new|for)\b": "treat as",
}
"""What messages, hints and help must not have, since users read and search these."""

OPENERS: Final = re.compile(r"(?:Tell|Give|Say|Hear|Have|Has)s?\b(?! up)")
PRONOUNS: Final = re.compile(r"(?:What|How|Which|Who|Where|Whether|Why|When)\b")

PAGES: Final = (
    "*.md",
    "Makefile",
    "walstream.toml",
    "docs/*.md",
    "docs/migrating/*.md",
    "docs/examples/*",
    "packaging/scripts/*",
    "packaging/systemd/*",
    "packaging/prometheus/*",
)
_PARAGRAPH: Final = re.compile(r"\n\s*\n|\n(?=[-|])")
_QUOTED: Final = re.compile(r'"[^"]*"')  # what a log said before, in CHANGELOG

LEFT: Final = {
    "walstream/cli": (1, "a text of the demo, which its recording shows"),
}
"""Packages with texts that are left: how many, and which. It only ever falls."""


class Text(NamedTuple):
    """One text of the product."""

    package: str
    place: str
    kind: str
    words: str


def texts(path: str, tree: ast.Module) -> Iterator[Text]:
    """Yield docstrings, by what they are of, and all other texts."""
    folders = path.split("/")
    package = "/".join(folders[: 1 if folders[0] == "consumer" else 2])
    documented: dict[ast.expr, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            documented.setdefault(node.value, "Expr")  # what an assignment is for
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            match node.body:
                case [ast.Expr(ast.Constant() as first), *_]:
                    documented[first] = type(node).__name__
                case _:
                    pass
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and " " in str(node.value):
            words = " ".join(str(node.value).split())
            kind = documented.get(node, "text")
            yield Text(package, f"{path}:{node.lineno}", kind, words)


def idioms(text: Text) -> list[str]:
    """Return what is wrong with a text, with the better word."""
    patterns = IDIOM | IN_MESSAGES if text.kind == "text" else IDIOM
    return [
        f"{text.place}: {found.group()!r}: {better}"
        for pattern, better in patterns.items()
        for found in re.finditer(pattern, text.words)
    ]


def paragraphs() -> Iterator[Text]:
    """Yield the pages, paragraph by paragraph, each on one line."""
    for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        for part in _PARAGRAPH.split(path.read_text("utf-8")):
            lines = (line.strip("# ") for line in part.splitlines())
            words = _QUOTED.sub("", " ".join(lines))
            yield Text("pages", path.name, "text", words)


@cache
def _all() -> list[Text]:
    return [text for path, tree in modules() for text in texts(path.as_posix(), tree)]


def _too_many(found: list[tuple[str, str]], limits: dict[str, int]) -> list[str]:
    """Return the findings of the packages that have more than they may."""
    counts = Counter(package for package, _ in found)
    return [what for package, what in found if counts[package] > limits.get(package, 0)]


def test_no_text_has_to_be_translated() -> None:
    found = [(text.package, what) for text in _all() for what in idioms(text)]
    limits = {package: most for package, (most, _) in LEFT.items()}
    assert _too_many(found, limits) == []


def test_no_page_has_to_be_translated() -> None:
    assert [what for text in paragraphs() for what in idioms(text)] == []


def test_a_module_and_a_class_are_described_by_a_noun() -> None:
    found = [
        f"{text.place}: {text.words}"
        for text in _all()
        if text.kind in {"Module", "ClassDef"}
        if OPENERS.match(text.words) or PRONOUNS.match(text.words)
    ]
    assert found == []


def test_a_function_says_what_it_does() -> None:
    found = [
        f"{text.place}: {text.words}"
        for text in _all()
        if text.kind in {"FunctionDef", "AsyncFunctionDef"}
        if OPENERS.match(text.words)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('raise Error("the next run begins anew")', "'anew': again, from scratch"),
        ('log(f"the port {port} cannot be had")', "'cannot be had': is in use"),
        ('"""Read the rows\n    that are there."""', "'that are there': existing"),
        ('hint = "x.toml is no TOML"', "'is no ': is not a"),
        ('hint = "they are not waited for any more"', "'any more': no longer"),
        ('log("the consumer goes on")', "'goes on': continue"),
        ('hint = "the records are passed over"', "'passed over': skip"),
        ('print(f"the backfill of {table} was given up")', "'given up': stop"),
    ],
)
def test_the_old_idiom_is_seen(source: str, wrong: str) -> None:
    found = [
        what
        for text in texts("walstream/x.py", ast.parse(source))
        for what in idioms(text)
    ]
    assert len(found) == 1
    assert wrong in found[0]


@pytest.mark.parametrize(
    "plain",
    [
        "there is no free slot",
        "is no longer in use",
        "it is no more than a guess",
        "how long it takes",
    ],
)
def test_plain_english_passes(plain: str) -> None:
    assert idioms(Text("walstream/x", "x", "text", plain)) == []


def test_a_package_may_keep_what_it_has_and_no_more() -> None:
    found = [("a", "one"), ("a", "two"), ("b", "three")]
    assert _too_many(found, {"a": 2}) == ["three"]
    assert _too_many(found, {"a": 1, "b": 1}) == ["one", "two"]
