"""What the cases share with the tests of the parts."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections

from tests.admin.conftest import operator
from tests.cases.proxy import Proxy, proxied
from tests.maintenance.connections import gateway, rival, rows
from tests.scenarios.conftest import start as start_process
from tests.scenarios.conftest import story
from tests.scenarios.executor_jobs import executor_jobs
from tests.store.conftest import move_clock, rivals, shop
from tests.worker.handlers import declare, gate
from tests.worker.workers import quick_settings, run_until_empty, start

__all__ = [
    "declare",
    "executor_jobs",
    "gate",
    "gateway",
    "move_clock",
    "operator",
    "quick_settings",
    "rival",
    "rivals",
    "rows",
    "run_until_empty",
    "shop",
    "start",
    "start_process",
    "story",
]


@pytest.fixture
def proxy(broker_database: None) -> Iterator[Proxy]:
    """A proxy before the test database; what goes through it is an alias ``proxied``."""
    with proxied() as made:
        yield made


@pytest.fixture
def proxied_alias(proxy: Proxy) -> Iterator[str]:
    """An alias of the test database behind the proxy."""
    settings: dict[str, Any] = {**connection.settings_dict, **proxy.database}
    connections.settings["proxied"] = settings
    yield "proxied"
    connections["proxied"].close()
    del connections["proxied"]
    del connections.settings["proxied"]
