"""The user's own code by import path: the one loader of engines, evaluators and recognisers, and a hash of their code.

The workspace is on the import path behind everything else: its `names.py` or `json.py` never stands in for a library
that something else imports. What is done with what a factory makes belongs to those who ask for it.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import open_regular, read_regular
from ragbench_dagster.runtime import RUNTIME

Show = Callable[[str], str]  # makes the message of somebody's exception fit to be shown


def _hidden(message: str) -> str:
    del message  # before there is a scrubber nothing of it may be shown
    return ""


def load_factory(path: str, root: Path | None, key: str, show: Show = _hidden) -> Callable[..., Any]:
    """The callable at `module:factory`: of an installed library, or of the workspace.

    Args:
        path: `module:factory`; the factory may be dotted (`module:Class.method`).
        root: the workspace's folder; None where there is none.
        key: the settings' key, for errors.
        show: for the message of a module that fails while it is imported.

    Raises:
        UserError: malformed, no such module, no such name, or the module fails while imported.
    """
    module_name, colon, attribute = path.partition(":")
    if not colon or not all(map(str.isidentifier, [*module_name.split("."), *attribute.split(".")])):
        raise UserError(f"{key}: {path!r} must read module:factory")
    if root is not None:
        _enter(str(root))
    try:
        module: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as fault:
        missing = fault.name or module_name
        named = module_name == missing or module_name.startswith(missing + ".")
        hint = _hint(module_name, root) or "put it into the workspace folder or install it"
        raise UserError(
            f"{key}: no module {missing!r}; {hint if named else f'install {missing}, which it imports'}"
        ) from fault
    except (Exception, SystemExit) as fault:  # a script without a guard may end the process
        raise UserError(f"{key}: {module_name} fails while imported: {_line(fault, show)}") from fault
    factory = module
    for part in attribute.split("."):
        if not hasattr(factory, part):
            hint = _hint(module_name, root) or "name a factory that it defines"
            raise UserError(f"{key}: {module_name} has no {attribute!r}; {hint}")
        factory = getattr(factory, part)
    if not callable(factory):
        raise UserError(f"{key}: {path} is a {type(factory).__name__}, not a factory; name a function")
    return factory  # type: ignore[no-any-return]


def _enter(root: str) -> None:
    """Put this workspace, and no other, last on the import path."""
    for other in [r for r in _roots if r != root]:
        _leave(_roots.pop(other))
    if root not in sys.path:
        sys.path.append(root)
        _roots[root] = root
    importlib.invalidate_caches()  # a module may have been written a moment ago


def _leave(root: str) -> None:
    """Take a workspace off the import path and forget its modules, for the next one may have others of their names."""
    if root in sys.path:
        sys.path.remove(root)
    for name, module in list(sys.modules.items()):
        if _of_workspace(module, name, root):
            del sys.modules[name]


_roots: dict[str, str] = RUNTIME.registry("workspaces on the import path", _leave)


def _of_workspace(module: ModuleType, name: str, root: str) -> bool:
    """True for a module that was found by way of `root`; a virtual environment in that folder is another way."""
    places = [getattr(module, "__file__", None) or "", *map(str, getattr(module, "__path__", []))]
    top = os.path.join(root, name.split(".")[0])
    return any(place == top or place.startswith((top + os.sep, top + ".")) for place in places)


def _hint(module_name: str, root: Path | None) -> str:
    """What to do where an installed library has the name of a module in the workspace; "" where none has."""
    top = module_name.split(".")[0]
    places = [] if root is None else [root / f"{top}.py", root / top]
    shadowed = next((place for place in places if place.exists()), None)
    library = sys.modules.get(top)
    if shadowed is None or library is None or _of_workspace(library, top, str(root)):
        return ""
    return f"{top} is an installed library, which comes before the workspace's {shadowed.name}; rename that"


def call_factory(
    factory: Callable[..., Any],
    params: Mapping[str, Any] | None,
    offered: Mapping[str, Any],
    key: str,
    show: Show = _hidden,
) -> Any:
    """What the factory makes.

    Args:
        factory: of `load_factory`.
        params: its keywords as the settings give them; None where they give none.
        offered: keywords that it gets where it takes them (`workspace`, `llm`).
        key: the settings' key, for errors.
        show: for the message of a factory that fails.

    Raises:
        UserError: parameters that do not fit, or the factory fails.
    """
    keywords = {**{name: value for name, value in offered.items() if takes(factory, name)}, **(params or {})}
    try:
        inspect.signature(factory).bind(**keywords)
    except TypeError as fault:
        raise UserError(f"{key}: {fault}" if params is None else f"{key}.params: {fault}") from fault
    except ValueError:  # a builtin without a signature
        pass
    try:
        return factory(**keywords)
    except UserError as fault:
        raise UserError(f"{key}: {fault}") from fault
    except (Exception, SystemExit) as fault:
        raise UserError(f"{key}: the factory failed: {_line(fault, show)}") from fault


def _line(fault: BaseException, show: Show) -> str:
    """Class and message of what user code raised at start-up, before any question was asked."""
    message = show((str(fault).splitlines() or [""])[0])
    return f"{type(fault).__name__}: {message}" if message else type(fault).__name__


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether `function` has a parameter of this name that can be given by keyword."""
    try:
        parameter = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)


def source_digest(factory: Callable[..., Any], root: Path) -> str:
    """Hash of the code behind a factory: its module, and where that lies in the workspace, its whole package."""
    module = inspect.getmodule(factory)
    name = getattr(module, "__file__", None)
    if module is None or name is None:
        return "builtin"
    path = Path(name).resolve()
    files = [path]
    if path.is_relative_to(root) and (path.parent / "__init__.py").is_file():
        top = path.parent
        while (top.parent / "__init__.py").is_file() and top.parent != root:
            top = top.parent
        files = sorted(top.rglob("*.py"))
    total = hashlib.sha256()
    for file in files:
        relative = os.path.relpath(file, path.parent)
        total.update(f"{relative}\0".encode())
        total.update(read_regular(file))
    return total.hexdigest()[:32]


def file_digest(path: Path) -> str:
    """Hash of a file's bytes; `absent` where there is none.

    Raises:
        UserError: the file cannot be read.
    """
    total = hashlib.sha256()
    try:
        with open_regular(path) as file:
            while block := file.read(1 << 20):
                total.update(block)
    except FileNotFoundError:
        return "absent"
    except OSError as fault:
        raise UserError(f"{path.name}: cannot be read ({fault.strerror}); make it readable") from fault
    return total.hexdigest()[:32]
