"""Small changes of a module's syntax tree, each of which its tests should notice."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
# what the other mutants of a condition amount to
_NEGATED_ELSEWHERE: Final = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_SAID: Final = {"_log"}  # lines of the log are for people


@dataclass(frozen=True, slots=True)
class Change:
    """One changed module."""

    place: str  # the function, what stood there and stands there now, which of several
    line: int
    text: str  # of the whole module


def changes(source: str) -> Iterator[Change]:
    """Yield every change of a module, in the order of its text."""
    tree = ast.parse(source)
    _drop_docstrings(tree)
    seen: Counter[str] = Counter()
    for where, before, swap in list(_Finder().found(tree)):
        undo = swap()
        after = undo.after
        place = f"{where}: {before} -> {after}"
        seen[place] += 1
        if seen[place] > 1:
            place = f"{place} (#{seen[place]})"
        yield Change(place, undo.line, ast.unparse(ast.fix_missing_locations(tree)))
        undo.back()


@dataclass(frozen=True, slots=True)
class _Undo:
    after: str
    line: int
    holder: ast.AST
    name: str
    index: int | None
    was: object

    def back(self) -> None:
        _put(self.holder, self.name, self.index, self.was)


@dataclass(frozen=True, slots=True)
class _Swap:
    """A node in its place, and what is to stand there."""

    holder: ast.AST
    name: str
    index: int | None
    new: ast.AST

    def __call__(self) -> _Undo:
        was = _get(self.holder, self.name, self.index)
        _put(self.holder, self.name, self.index, self.new)
        line = getattr(was, "lineno", 0)
        after = _shown(self.new)
        return _Undo(after, line, self.holder, self.name, self.index, was)


class _Finder:
    """Walks a tree, and knows in which function it is."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def found(self, node: ast.AST) -> Iterator[tuple[str, str, _Swap]]:
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._names.append(node.name)
        for name, index, child in _children(node):
            if _left_alone(node, name, child):
                continue
            for new in _instead(child, node, name):
                where = ".".join(self._names) or "module"
                yield where, _shown(child), _Swap(node, name, index, new)
            yield from self.found(child)
        if named:
            self._names.pop()


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield name, None, value
        elif isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.AST):
                    yield name, index, one


def _left_alone(node: ast.AST, name: str, child: ast.AST) -> bool:
    """Return True for types, decorators, words for people, and what only mypy sees."""
    if name in {"annotation", "returns", "decorator_list", "bases"}:
        return True
    if isinstance(child, ast.If) and _shown(child.test) == "TYPE_CHECKING":
        return True
    if isinstance(child, ast.JoinedStr):
        return True
    if isinstance(node, ast.Raise) and name == "exc":
        return True
    return isinstance(child, ast.Expr) and _shown(child).split(".")[0] in _SAID


def _instead(child: ast.AST, node: ast.AST, name: str) -> Iterator[ast.AST]:
    if isinstance(child, ast.Compare):
        yield from _compared(child)
    elif isinstance(child, ast.BoolOp):
        changed = copy.deepcopy(child)
        changed.op = ast.Or() if isinstance(child.op, ast.And) else ast.And()
        yield changed
    elif isinstance(child, ast.UnaryOp) and isinstance(child.op, ast.Not):
        yield copy.deepcopy(child.operand)
    elif isinstance(child, ast.BinOp | ast.AugAssign):
        yield from _computed(child)
    elif isinstance(child, ast.Constant):
        yield from _constant(child)
    elif isinstance(child, ast.stmt):
        yield from _statement(child)
    if name == "test" and isinstance(node, ast.If | ast.IfExp) and _negatable(child):
        assert isinstance(child, ast.expr)
        yield ast.UnaryOp(ast.Not(), copy.deepcopy(child))
    if name == "ifs" and _negatable(child):
        assert isinstance(child, ast.expr)
        yield ast.UnaryOp(ast.Not(), copy.deepcopy(child))


def _negatable(test: ast.AST) -> bool:
    if isinstance(test, ast.UnaryOp):
        return False
    return not (
        isinstance(test, ast.Compare) and isinstance(test.ops[0], _NEGATED_ELSEWHERE)
    )


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for index, one in enumerate(node.ops):
        changed = copy.deepcopy(node)
        changed.ops[index] = _COMPARED[type(one)]()
        yield changed


def _computed(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    other = _COMPUTED.get(type(node.op))
    texts = (ast.JoinedStr,)
    if isinstance(node, ast.BinOp) and isinstance(node.left, texts):
        return
    if other is not None:
        changed = copy.deepcopy(node)
        changed.op = other()
        yield changed


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    match node.value:
        case bool() as value:
            yield ast.Constant(not value)
        case int() as value:
            yield ast.Constant(value + 1)
        case bytes() as value if value:
            yield ast.Constant(value[:-1])
        case _:
            pass


def _statement(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Return(value=ast.expr() as value) if not _is_plain(value):
            yield ast.Return(ast.Constant(None))
        case _:
            pass


def _is_plain(value: ast.expr) -> bool:
    """Return True for what other mutants change already, and for None."""
    return isinstance(value, ast.Constant)


def _shown(node: ast.AST) -> str:
    """Return the first line of its text."""
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    first, _, more = text.partition("\n")
    return f"{first} …" if more else first


def _get(holder: ast.AST, name: str, index: int | None) -> object:
    value = getattr(holder, name)
    return value if index is None else value[index]


def _put(holder: ast.AST, name: str, index: int | None, new: object) -> None:
    if index is None:
        setattr(holder, name, new)
    else:
        getattr(holder, name)[index] = new


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=body)
                | ast.ClassDef(body=body)
                | ast.FunctionDef(body=body)
                | ast.AsyncFunctionDef(body=body)
            ):
                _drop_docstring(body)
            case _:
                pass


def _drop_docstring(body: list[ast.stmt]) -> None:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *_]:
            body[0] = ast.Pass()
        case _:
            pass
