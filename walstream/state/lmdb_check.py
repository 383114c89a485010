"""Is a state file whole? Read beside LMDB, before LMDB maps it.

LMDB believes its pages: a damaged one ends the process by an assertion or by SIGBUS,
not by an exception. So the tree of the newest transaction is walked first: every page
that it names is there, of the right kind, used once, and none of them counts as free.
What the documents hold is checked by their checksums. Layout: lmdb.h, mdb.c (0.9).
"""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_HEADER_SIZE: Final = 16
_META_START: Final = Struct("=II16x")  # magic, version
_TREE_RECORD: Final = Struct(
    "=IHH32xQ"
)  # page size (of the first tree), flags, depth, root
_META_END: Final = Struct("=QQ")  # last page, transaction
_PAGE: Final = Struct("=QxxHHH")  # number, flags, lower, upper
_OVERFLOW: Final = Struct("=QxxHI")  # number, flags, pages
_NODE: Final = Struct("=HHHH")  # size or page (low, high), flags, key size
_U64: Final = Struct("=Q")
_U16: Final = Struct("=H")
_BRANCH, _LEAF, _LARGE = 1, 2, 4  # kinds of a page
_ELSEWHERE: Final = 1  # flag of a node: its data are on overflow pages
_NO_PAGE: Final = 2**64 - 1
_DEEPEST: Final = 32
_FLAGS: Final = (8, 0)  # of the tree of free pages (integer keys), of the documents
_PAGE_SIZES: Final = tuple(1 << bits for bits in range(9, 17))


class Broken(Exception):
    """The file cannot be what LMDB wrote; says where."""


class _Tree(NamedTuple):
    depth: int  # 0: empty
    root: int


class _Meta(NamedTuple):
    transaction: int
    last_page: int
    trees: tuple[_Tree, ...]  # free pages, documents


def check(path: Path) -> None:
    """Raise Broken unless the file is whole, empty or not there."""
    content = path.read_bytes() if path.exists() else b""
    if not content:
        return
    page_size = _page_size(content)
    metas = [_meta(content, page_size * number) for number in (0, 1)]
    # of two of one number LMDB takes the first: the other was not written to its end
    newest = max(metas, key=lambda meta: meta.transaction)
    if (newest.last_page + 1) * page_size > len(content):
        raise Broken("the file is shorter than its own count of pages")
    walk = _Walk(content, page_size, newest.last_page)
    free, documents = newest.trees
    lists = list(walk.data(free.root, free.depth))
    for _ in walk.data(documents.root, documents.depth):
        pass  # met is enough
    _check_free(lists, walk.used, newest.last_page)


def _page_size(content: bytes) -> int:
    if len(content) < _HEADER_SIZE + _META_START.size + _TREE_RECORD.size:
        raise Broken("it ends within its first page")
    size: int = _TREE_RECORD.unpack_from(content, _HEADER_SIZE + _META_START.size)[0]
    if size not in _PAGE_SIZES or len(content) < 2 * size:
        raise Broken("its meta pages are not LMDB's")
    return size


def _meta(content: bytes, start: int) -> _Meta:
    magic, version = _META_START.unpack_from(content, start + _HEADER_SIZE)
    offset = start + _HEADER_SIZE + _META_START.size
    trees = []
    for flags in _FLAGS:
        _, found, depth, root = _TREE_RECORD.unpack_from(content, offset)
        if found != flags or depth > _DEEPEST or (depth == 0) != (root == _NO_PAGE):
            raise Broken("its meta pages are not LMDB's")
        trees.append(_Tree(depth, root))
        offset += _TREE_RECORD.size
    if magic != _MAGIC or version != _VERSION:
        raise Broken("its meta pages are not LMDB's")
    last_page, transaction = _META_END.unpack_from(content, offset)
    return _Meta(transaction, last_page, tuple(trees))


class _Walk:
    """Goes through a tree, page by page; no page may be met twice."""

    def __init__(self, content: bytes, page_size: int, last_page: int) -> None:
        self._content = content
        self._page_size = page_size
        self._last_page = last_page
        self.used = {0, 1}

    def _use(self, number: int, count: int = 1) -> int:
        """Take pages into use; give the offset of the first."""
        pages = range(number, number + count)
        if pages.stop - 1 > self._last_page or not self.used.isdisjoint(pages):
            raise Broken(f"page {number} is named twice, or lies after the last one")
        self.used.update(pages)
        return number * self._page_size

    def data(self, root: int, depth: int) -> Iterator[bytes]:
        """Yield the data of a tree's entries, in order."""
        if depth == 0:
            return
        start = self._use(root)
        number, kind, lower, upper = _PAGE.unpack_from(self._content, start)
        wanted = _BRANCH if depth > 1 else _LEAF
        if (
            number != root
            or kind != wanted
            or not (_HEADER_SIZE <= lower <= upper <= self._page_size)
        ):
            raise Broken(f"page {root} does not match the tree")
        for pointer in range(start + _HEADER_SIZE, start + lower, 2):
            (offset,) = _U16.unpack_from(self._content, pointer)
            if not upper <= offset <= self._page_size - _NODE.size:
                raise Broken(f"an entry of page {root} lies outside of it")
            if depth > 1:
                low, high, top, _ = _NODE.unpack_from(self._content, start + offset)
                yield from self.data(low | high << 16 | top << 32, depth - 1)
            else:
                yield self._entry(root, start, offset)

    def _entry(self, page: int, start: int, offset: int) -> bytes:
        low, high, flags, key_size = _NODE.unpack_from(self._content, start + offset)
        size = low | high << 16
        begin = offset + _NODE.size + key_size
        large = flags == _ELSEWHERE
        end = begin + (_U64.size if large else size)
        if flags not in (0, _ELSEWHERE) or not key_size or end > self._page_size:
            raise Broken(f"an entry of page {page} lies outside of it")
        if not large:
            return self._content[start + begin : start + end]
        (number,) = _U64.unpack_from(self._content, start + begin)
        return self._overflow(number, size)

    def _overflow(self, number: int, size: int) -> bytes:
        if number > self._last_page:
            raise Broken(f"page {number} lies after the last one")
        found, kind, count = _OVERFLOW.unpack_from(
            self._content, number * self._page_size
        )
        room = count * self._page_size - _HEADER_SIZE
        if found != number or kind != _LARGE or size > room:
            raise Broken(f"page {number} does not match the tree")
        begin = self._use(number, count) + _HEADER_SIZE
        return self._content[begin : begin + size]


def _check_free(lists: list[bytes], used: set[int], last_page: int) -> None:
    """Refuse lists with a page in use: what counts as free will be written to."""
    free: set[int] = set()
    for data in lists:
        numbers = [number for (number,) in _U64.iter_unpack(data[: len(data) & ~7])]
        if not numbers or numbers[0] != len(numbers) - 1:
            raise Broken("a list of free pages does not have its length")
        found = set(numbers[1:])
        if (
            len(found) != numbers[0]
            or numbers[1:] != sorted(found, reverse=True)
            or not found.isdisjoint(used | free)
            or max(found, default=0) > last_page
        ):
            raise Broken("a list of free pages names a page that is in use")
        free |= found
