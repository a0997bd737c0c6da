"""Clones of their own for the tests of the project's shell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shell.clones import Clone


@pytest.fixture(scope="module")
def module_clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    clone = Clone(tmp_path_factory.mktemp("clones") / "a clone")
    yield clone
    clone.remove()


@pytest.fixture
def clone(module_clone: Clone) -> Iterator[Clone]:
    """A clone whose server does not run; its data may be there already, for making them takes a second or two."""
    yield module_clone
    module_clone.kill_users()


@pytest.fixture
def new_clone(tmp_path: Path) -> Iterator[Clone]:
    """A clone in which nothing ever ran."""
    clone = Clone(tmp_path / "a new clone")
    yield clone
    clone.remove()
