"""Debezium's regular expressions of names, as walstream's patterns of `*` and `?`.

An expression matches a whole name, `schema.table` or `schema.table.column`, and is
translated only where the patterns match exactly the same names; Debezium ignores case,
walstream does not. A name is taken to hold no dot of its own.
"""

import re
from dataclasses import dataclass
from typing import Final

_MOST: Final = 64  # patterns that one expression may become
_ANY: Final = "\0"  # one character, while a `?` would be one of a name
_MANY: Final = "\1"
_NO_DOTS: Final = "\2"  # any number of characters that are no dots
_SPELT: Final = {_ANY: "?", _MANY: "*", _NO_DOTS: "*"}
_GROUP: Final = re.compile(r"\((?:\?:|\?<[A-Za-z][A-Za-z0-9]*>)?")
_COUNT: Final = re.compile(r"\{([0-9]{1,2})\}")
_CLASS: Final = re.compile(r"\[([A-Za-z0-9_$#-]+)\]")
_FLAGS: Final = "(?i)"  # what Debezium's are anyway


class Inexact(Exception):
    """An expression that no pattern says; its text says why."""


def split(written: str) -> list[str]:
    r"""Split a list at its commas, as Debezium does: `\,` is one of an expression."""
    parts = re.split(r"((?:[^\\,]|\\.)*)(?:,|$)", written, flags=re.DOTALL)[1::2]
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


def patterns(expression: str, dots: int | None = None) -> list[str]:
    """Return the patterns that match the same names, each with so many dots, or any.

    Raises Inexact where there are none.
    """
    if re.search("[A-Z]", re.sub(r"\\[A-Z]", "", expression)):
        raise Inexact("it has capital letters, and Debezium ignores case")
    parser = _Parser(expression.removeprefix(_FLAGS))
    return sorted({_spelt(found, dots) for found in parser.whole()})


def is_literal(pattern: str) -> bool:
    """Return whether a pattern is a name."""
    return not set(pattern) & {"*", "?"}


def column_of(pattern: str) -> tuple[str, str]:
    """Split a pattern of columns into that of tables, and a column's name."""
    tables, _, column = pattern.rpartition(".")
    if not (tables and column and is_literal(column)):
        raise Inexact("it does not end in a column's name")
    return tables, column


def _spelt(found: str, dots: int | None) -> str:
    """Spell a parsed expression; a character may have to be the dot of a name."""
    if dots is None:
        if _NO_DOTS in found:
            raise Inexact("walstream's patterns have no [^.]")
        spelt = "".join(_SPELT.get(character, character) for character in found)
        return re.sub(r"\*+", "*", spelt)
    missing = dots - found.count(".")
    is_long = _MANY in found or _NO_DOTS in found
    if not is_long and missing and found.count(_ANY) == missing:
        found = found.replace(_ANY, ".")
        missing = 0
    if _NO_DOTS in found and missing:
        raise Inexact("it is not known where its dot stands")
    if missing < 0 or (missing and not is_long and found.count(_ANY) < missing):
        raise Inexact(f"no name of {dots} dots matches it" if dots else "it has a dot")
    spelt = "".join(_SPELT.get(character, character) for character in found)
    spelt = re.sub(r"\*+", "*", spelt)
    # no part of a name is empty
    return spelt if missing else re.sub(r"(^|\.)\?\*(?=\.|$)", r"\1*", spelt)


@dataclass(slots=True)
class _Parser:
    """Expands an expression into texts, in which control characters are wild."""

    text: str
    place: int = 0

    def whole(self) -> list[str]:
        self.text = self.text.removeprefix("^")
        if self.text.endswith("$") and not self.text.endswith("\\$"):
            self.text = self.text[:-1]
        found = self._alternatives()
        if self.place < len(self.text):
            raise Inexact("it has a ) too many")
        return found

    def _alternatives(self) -> list[str]:
        found = self._sequence()
        while self._takes("|"):
            found = _few(found + self._sequence())
        return found

    def _sequence(self) -> list[str]:
        found = [""]
        while self.place < len(self.text) and self.text[self.place] not in "|)":
            more = self._repeated(self._atom())
            found = _few([one + other for one in found for other in more])
        return found

    def _takes(self, sign: str) -> bool:
        taken = self.text.startswith(sign, self.place)
        self.place += len(sign) if taken else 0
        return taken

    def _atom(self) -> list[str]:
        if self.text.startswith("(", self.place):
            return self._group()
        if self._takes("[^.]") or self._takes("[^\\.]"):
            return [_NO_DOTS]
        if found := _CLASS.match(self.text, self.place):
            self.place = found.end()
            return _members(found[1])
        character = self.text[self.place]
        self.place += 1
        if character == ".":
            return [_ANY]
        if character == "\\":
            character = self.text[self.place : self.place + 1]
            self.place += 1
            if not character or character.isalnum():
                raise Inexact(f"walstream's patterns have no \\{character}")
        elif character in "[]{}*+?^$":
            raise Inexact(f"walstream's patterns have no {character} of that kind")
        if character in "*?":
            raise Inexact(f"a name has a {character} in it")
        return [character]

    def _group(self) -> list[str]:
        opened = _GROUP.match(self.text, self.place)
        self.place = opened.end() if opened else self.place
        if self.text.startswith("?", self.place):
            raise Inexact("walstream's patterns have no look-around")
        found = self._alternatives()
        if not self._takes(")"):
            raise Inexact("it has a ( too many")
        return found

    def _repeated(self, atoms: list[str]) -> list[str]:
        if count := _COUNT.match(self.text, self.place):
            self.place = count.end()
            found = [_one(atoms) * int(count[1])]
        elif self._takes("*"):
            found = [_wild(atoms)]
        elif self._takes("+"):
            found = [_ANY + _wild(atoms)]
        elif self._takes("?"):
            found = ["", *(_single(one) for one in atoms)]
        else:
            return [_single(one) for one in atoms]
        if self._takes("+"):
            raise Inexact("it has a possessive quantifier")
        self._takes("?")  # reluctant: it matches the same whole names
        return found


def _single(atom: str) -> str:
    """Return one character other than a dot, which no pattern says."""
    if atom == _NO_DOTS:
        raise Inexact("walstream's patterns have no [^.] alone")
    return atom


def _one(atoms: list[str]) -> str:
    """Return what is repeated a number of times."""
    if len(atoms) != 1:
        raise Inexact("it repeats a choice")
    return _single(atoms[0])


def _wild(atoms: list[str]) -> str:
    """Return any number of them."""
    if atoms == [_ANY]:
        return _MANY
    if atoms == [_NO_DOTS]:
        return _NO_DOTS
    raise Inexact("it repeats what is not any character")


def _few(found: list[str]) -> list[str]:
    if len(found) > _MOST:
        raise Inexact(f"it stands for more than {_MOST} names")
    return found


def _members(written: str) -> list[str]:
    if "-" in written.strip("-"):
        raise Inexact("walstream's patterns have no range of characters")
    return sorted(set(written.lower()))
