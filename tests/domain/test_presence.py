"""When a worker counts as alive, and how its queues read."""

import pytest

from django_pgbroker.domain.presence import Presence, describe_queues, judge_presence


@pytest.mark.parametrize(
    ("age", "facts", "presence"),
    [
        (60, {}, Presence.ALIVE),
        (60.1, {}, Presence.LOST),
        (1, {"is_draining": True}, Presence.DRAINING),
        (61, {"is_draining": True}, Presence.LOST),
        (1, {"has_stopped": True, "stop_reason": "drained"}, Presence.STOPPED),
        (1, {"has_stopped": True, "stop_reason": "lost"}, Presence.LOST),
    ],
)
def test_a_worker_is_lost_after_five_heartbeats(age: float, facts: dict[str, object], presence: Presence):
    assert judge_presence(age, 12, **({"has_stopped": False, "is_draining": False} | facts)) is presence


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ({"default": 1, "critical": 5}, "default, critical:5"),
        (["default", "mail"], "default, mail"),
        ({}, ""),
        ("x", "x"),
    ],
)
def test_queues_read_as_on_the_command_line(queues: object, words: str):
    assert describe_queues(queues) == words
