"""What a worker process hears from its supervisor, and that it notices when that one is gone."""

import os

import pytest

from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.leash import ABORT, DRAIN, follow_leash


@pytest.fixture
def leash():
    """The writing end, and the stopping that follows the other one."""
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    stopping = Stopping()
    follow_leash(reader, stopping)
    assert not os.get_inheritable(reader), "what handlers start must not have it"
    yield writer, stopping
    if not stopping.drain.is_set():
        os.close(writer)


def test_nothing_is_asked_at_first_then_drain_then_abort(leash):
    writer, stopping = leash
    assert not stopping.drain.wait(0.05)
    os.write(writer, DRAIN)
    assert stopping.drain.wait(10)
    assert not stopping.abort.is_set()
    os.write(writer, ABORT)
    assert stopping.abort.wait(10)
    os.close(writer)


def test_a_supervisor_that_is_gone_lets_it_drain(leash):
    writer, stopping = leash
    os.close(writer)
    assert stopping.drain.wait(10)
    assert not stopping.abort.is_set()


def test_what_is_no_pipe_is_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    with pytest.raises(OSError, match="Bad file descriptor"):
        follow_leash(reader, Stopping())
