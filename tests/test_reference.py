"""The pages of the reference that are made from the code are current, and say what the code says."""

import re

import pytest

from django_pgbroker.domain.states import TRANSITIONS, JobState, Outcome
from django_pgbroker.store.statement import statement_names
from tools.write_reference import FOLDER, ROOT, pages

NEXT = "run: .venv/bin/python tools/write_reference.py"


@pytest.mark.parametrize("path", list(pages()), ids=lambda path: path.name)
def test_a_page_that_is_made_from_the_code_is_current(path):
    assert path.read_text(encoding="utf-8") == pages()[path], NEXT


def test_every_statement_has_its_section():
    text = (FOLDER / "statements.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == statement_names()


def test_every_state_outcome_and_legal_move_has_its_line():
    lines = (FOLDER / "states.md").read_text(encoding="utf-8").splitlines()
    for member in (*JobState, *Outcome):
        assert any(line.startswith(f"| {member.value} | *{member.label}* |") for line in lines)
    moves = {tuple(re.findall(r"\*(\w+)\*", line)) for line in lines if line.startswith("| *")}
    assert moves == {(origin.label, target.label) for origin, targets in TRANSITIONS.items() for target in targets}


EXPLANATIONS = sorted((FOLDER.parent / "explanation").glob("*.md"))


@pytest.mark.parametrize("path", EXPLANATIONS, ids=lambda path: path.name)
def test_every_test_that_a_page_names_as_its_proof_exists(path):
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", path.read_text(encoding="utf-8"))
    assert named
    for file, test in named:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:async )?def {test or ''}", source, re.MULTILINE), f"{file} has no {test}"
