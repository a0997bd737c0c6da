"""The table of floors as a test: who may import whom, read from the sources; and the other rules of the layout."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from django_pgbroker.store.statement import statement_names

ROOT = Path(__file__).parent.parent
PACKAGE = "django_pgbroker"

FLOORS = {
    "domain": 0,
    "conf": 1,
    "telemetry": 1,
    "registry": 1,
    "plugins": 1,
    "signals": 1,
    "models": 2,
    "store": 2,
    "runtime": 3,
    "operations": 4,
    "worker": 4,
    "maintenance": 4,
    "migrations": 5,
    "jobs": 5,
    "admin": 5,
    "management": 5,
    "middleware": 5,
    "checks": 5,
    "apps": 5,
    "bench": 5,
}
EDGES = {part for part, floor in FLOORS.items() if floor == 5}

#: Rules of domain may use these beyond the standard library.
DOMAIN_MAY_USE = {"croniter", "annotationlib"}  # the latter is standard from Python 3.14 on

#: Edges that may use statements and cursors, with the reason.
EDGES_THAT_MAY_USE_THE_STORE = {
    "bench": "it measures the statements bare, beside the broker that runs them",
}

#: Imports inside a function, with the reason.
LATE_IMPORTS = {
    "django_pgbroker.apps": "checks and hooks import models, which exist only once the apps are ready",
}

#: Files that may be longer than 400 lines, with the reason.
LONG_FILES = {
    "django_pgbroker/migrations/0001_initial.py": "the state of all models at once, written once and never edited",
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


MODULES = {module_name(path): path for path in sources(PACKAGE)}


def imports_of(name: str) -> set[str]:
    """Everything that a module imports, anywhere in it; names out of our package as the modules they are in."""
    found = set()
    for node in ast.walk(parse(MODULES[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            module = node.module or ""
            inner = {f"{module}.{alias.name}" for alias in node.names} & set(MODULES)
            outer = {alias.name for alias in node.names if f"{module}.{alias.name}" not in MODULES}
            found |= inner | ({module} if outer else set())
    return found


def own_imports_of(name: str) -> set[str]:
    return {each for each in imports_of(name) if each.split(".")[0] == PACKAGE}


def part_of(module: str) -> str:
    """The package or module right below the root: what the floors speak of."""
    return module.split(".")[1] if "." in module else ""


BELOW_THE_ROOT = [pytest.param(name, id=name) for name in MODULES if name != PACKAGE]


def test_every_part_has_a_floor():
    assert {part_of(name) for name in MODULES} - {""} <= set(FLOORS)


@pytest.mark.parametrize("name", BELOW_THE_ROOT)
def test_a_module_imports_only_from_floors_below_and_from_its_own_part(name):
    part = part_of(name)
    upward = {
        each
        for each in own_imports_of(name)
        if part_of(each) != part and FLOORS.get(part_of(each), 9) >= FLOORS[part] and part not in EDGES
    }
    assert not upward, f"floor {FLOORS[part]} may not import {sorted(upward)}"


@pytest.mark.parametrize("name", BELOW_THE_ROOT)
def test_nothing_inside_imports_the_public_face(name):
    """``django_pgbroker/__init__.py`` imports the operations: whoever imports names from it stands in a circle."""
    assert PACKAGE not in own_imports_of(name)


@pytest.mark.parametrize("name", [each for each in MODULES if part_of(each) == "domain"])
def test_the_rules_need_nothing_but_the_standard_library(name):
    tops = {each.split(".")[0] for each in imports_of(name)}
    assert tops <= set(sys.stdlib_module_names) | {PACKAGE} | DOMAIN_MAY_USE


def test_edges_never_import_a_statement_but_for_the_listed():
    readers = {
        part_of(name)
        for name in MODULES
        if part_of(name) in EDGES and any(part_of(each) == "store" for each in own_imports_of(name))
    }
    assert readers == set(EDGES_THAT_MAY_USE_THE_STORE)


def test_models_are_read_by_operations_and_edges_only():
    readers = {part_of(name) for name in MODULES if any(part_of(each) == "models" for each in own_imports_of(name))}
    assert readers <= {"models", "operations", *EDGES}


def test_the_public_face_loads_no_model():
    """It is imported by ``jobs.py`` files and by settings, when no model can be loaded yet."""
    seen: set[str] = set()
    to_see = [PACKAGE]
    while to_see:
        name = to_see.pop()
        if name not in seen:
            seen.add(name)
            to_see += own_imports_of(name)
    assert len(seen) > 10
    assert {part_of(name) for name in seen}.isdisjoint({"models", "admin", "apps", "migrations"})


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: own_imports_of(name) - {name} for name in MODULES}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in sources(
    PACKAGE, "example_project", "tests", "tools"
)])  # fmt: skip
def test_every_module_says_what_it_is_for_and_stays_one_idea(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    is_generated = "migrations" in path.parts and not path.name.startswith("_")
    if lines and not is_generated:
        assert ast.get_docstring(parse(path)), "a module docstring: purpose and caller"
    assert lines <= 400 or str(path.relative_to(ROOT)) in LONG_FILES, f"{lines} lines are two ideas"


def test_imports_inside_functions_are_the_listed_ones():
    late = {
        name
        for name, path in MODULES.items()
        for function in ast.walk(parse(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert late == set(LATE_IMPORTS)


def signals_of(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("signals")
        for alias in node.names
    }


def test_only_the_gateway_opens_cursors_and_only_it_and_the_runtime_connect():
    callers = set()
    for name, path in MODULES.items():
        signals = signals_of(parse(path))
        for node in ast.walk(parse(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            is_signal = isinstance(node.func.value, ast.Name) and node.func.value.id in signals
            if node.func.attr in {"cursor", "connect", "create_connection"} and not is_signal:
                callers.add(name)
    may = {"runtime", *EDGES_THAT_MAY_USE_THE_STORE}
    assert f"{PACKAGE}.store.gateway" in callers
    assert not {name for name in callers - {f"{PACKAGE}.store.gateway"} if part_of(name) not in may}


@pytest.mark.parametrize("name", [f"{PACKAGE}.worker.{each}" for each in ("pools.threads", "executor", "context")])
def test_what_runs_handlers_knows_no_statement(name):
    assert not {each for each in own_imports_of(name) if part_of(each) == "store"}


def test_every_statement_file_has_a_caller():
    """By name, in a string: the gateway looks statements up."""
    strings = {
        node.value
        for path in MODULES.values()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(statement_names()) <= strings
