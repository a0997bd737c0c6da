"""The broker of the histories, on the test database."""

from collections.abc import Iterator

import pytest

from tests.histories.database import BrokerOfHistories

pytest.register_assert_rewrite("tests.histories.machine")


@pytest.fixture
def broker(broker_database: None) -> Iterator[BrokerOfHistories]:
    made = BrokerOfHistories()
    yield made
    made.close()
