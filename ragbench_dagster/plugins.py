"""Finds and calls a factory by import path, and hashes its code. Asking belongs in `engine.py`."""

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
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.scrubbing.redact import redact

_roots: list[str] = []  # workspace roots put on sys.path by this process


def load_factory(path: str, root: Path, key: str) -> Callable[..., Any]:
    """The callable at `module:factory`; modules in the workspace folder come first.

    Args:
        path: `module:factory`; the factory may be dotted (`module:Class.method`).
        root: the workspace, put on sys.path.
        key: the settings' key, for errors.

    Raises:
        UserError: malformed, no such module, no such name, or the module fails while imported.
    """
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise UserError(f"{key}: {path!r} must read module:factory")
    _use_root(root, module_name)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as fault:
        missing = fault.name or module_name
        own = module_name == missing or module_name.startswith(missing + ".")
        hint = "put it into the workspace folder or install it" if own else f"install {missing}, which it imports"
        raise UserError(f"{key}: no module {missing!r}; {hint}") from fault
    except Exception as fault:
        raise UserError(f"{key}: {module_name} fails while imported: {type(fault).__name__}: {_line(fault)}") from fault
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UserError(f"{key}: {module_name} has no {attribute!r}; name a factory that it defines")
        found = getattr(found, part)
    if not callable(found):
        raise UserError(f"{key}: {path} is a {type(found).__name__}, not a factory; name a function")
    return found  # type: ignore[no-any-return]


def _use_root(root: Path, module_name: str) -> None:
    """Put this workspace, and no other, first on sys.path; forget another workspace's module of the same name."""
    text = str(root)
    for other in [r for r in _roots if r != text]:
        _roots.remove(other)
        if other in sys.path:
            sys.path.remove(other)
    if text not in sys.path:
        sys.path.insert(0, text)
    if text not in _roots:
        _roots.append(text)
    top = module_name.split(".")[0]
    if not ((root / top).is_dir() or (root / f"{top}.py").is_file()):
        return
    loaded = sys.modules.get(top)
    if loaded is not None and not _inside(loaded, root):
        for name in [n for n in sys.modules if n == top or n.startswith(top + ".")]:
            del sys.modules[name]
    importlib.invalidate_caches()


def _inside(module: ModuleType, root: Path) -> bool:
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", []))
    return any(Path(place).resolve().is_relative_to(root) for place in places if place)


def call_factory(factory: Callable[..., Any], params: Mapping[str, Any], ws: Workspace, key: str) -> Any:
    """What the factory makes; `workspace` is passed where it takes such a keyword.

    Raises:
        UserError: parameters that do not fit, or the factory fails.
    """
    keywords = dict(params)
    if takes(factory, "workspace") and "workspace" not in keywords:
        keywords["workspace"] = ws
    try:
        inspect.signature(factory).bind(**keywords)
    except TypeError as fault:
        raise UserError(f"{key}.params: {fault}") from fault
    except ValueError:  # a builtin without a signature
        pass
    try:
        return factory(**keywords)
    except UserError as fault:
        raise UserError(f"{key}: {fault}") from fault
    except Exception as fault:
        raise UserError(f"{key}: the factory failed: {type(fault).__name__}: {_line(fault)}") from fault


def _line(fault: Exception) -> str:
    """The first line of a message that a factory raised at start-up, before any question was asked."""
    return redact((str(fault).splitlines() or [""])[0], limit=200)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether `function` has a parameter of this name that can be given by keyword."""
    try:
        found = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return found is not None and found.kind in (found.KEYWORD_ONLY, found.POSITIONAL_OR_KEYWORD)


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
