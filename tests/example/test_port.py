"""Where the web server of the demo listens."""

import socket
from collections.abc import Iterator

import pytest

from example_project.documents.port import HOST, PortTaken, choose_port, is_free


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


def test_a_free_port_is_taken_as_it_is(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORT", raising=False)
    free = choose_port(taken)

    assert choose_port(free) == free


def test_another_port_replaces_one_that_is_in_use(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORT", raising=False)

    chosen = choose_port(taken)

    assert chosen != taken
    assert is_free(chosen)


def test_a_port_named_by_the_environment_is_never_replaced(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", str(taken))

    with pytest.raises(PortTaken, match=rf"port {taken} is in use. Next: set PORT"):
        choose_port(taken)
