"""Where the web server of the demo listens."""

import socket
import time
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from example_project.documents.children import Children
from example_project.documents.web import ANY, HOST, PortTaken, answers, choose_port, is_free, start_web_server


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


def test_a_free_port_is_taken_as_it_is() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]

    assert is_free(port)
    assert choose_port(port) == port


def test_any_other_port_will_do_when_one_is_in_use(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORT", raising=False)

    assert not is_free(taken)
    assert choose_port(taken) == ANY


def test_a_port_named_by_the_environment_is_never_replaced(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", str(taken))

    with pytest.raises(PortTaken, match=rf"port {taken} is in use. Next: set PORT"):
        choose_port(taken)


def test_a_port_that_was_taken_meanwhile_is_replaced(
    environment: dict[str, str], taken: int, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", environment["DATABASE_URL"])
    monkeypatch.delenv("PORT", raising=False)
    with socket.create_server((HOST, 0)) as listener:
        settings.PORT = listener.getsockname()[1]
    thieves: list[socket.socket] = []
    with Children() as children:

        def steal_the_port_and_pause() -> None:
            if not thieves:
                thieves.append(socket.create_server((HOST, settings.PORT)))
            children.check_alive()
            time.sleep(0.05)

        address = start_web_server(children, steal_the_port_and_pause)

        assert answers(address)
        assert f":{settings.PORT}/" not in address
    thieves[0].close()
