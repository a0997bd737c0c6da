"""The table of the cases is true: it names every case, and tests that exist; every test here stands in it."""

import ast
import re
from pathlib import Path

import pytest

from tests.cases.table import CASES

TESTS = Path(__file__).parent.parent


def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", CASES)
def test_a_case_names_tests_that_exist_or_what_it_waits_for(name):
    case = CASES[name]
    assert case.tests or case.waits_for
    for test in case.tests:
        path, _, function = test.partition("::")
        assert function in functions_of(TESTS / path), test


def test_every_case_of_the_collection_has_a_line():
    assert list(CASES) == [f"B{number:03}" for number in range(1, 95)]


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("test_b*.py")), ids=lambda path: path.stem)
def test_every_test_here_names_its_cases_which_know_its_file(path):
    tests = {name for name in functions_of(path) if name.startswith("test_")}
    assert tests
    for test in tests:
        ids = re.findall(r"b\d{3}", test)
        assert ids, f"{test} names no case"
        for each in ids:
            known = [name.partition("::")[0] for name in CASES[each.upper()].tests]
            assert f"cases/{path.name}" in known, f"{each} does not know {path.name}"
