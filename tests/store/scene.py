"""One state of the tables, with jobs in every stage, and the connections that ask for plans in it."""

from collections.abc import Callable, Collection

from django.db import connection

from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.gateway import Gateway
from tests.maintenance.rows import Rows
from tests.store.plans import Plan, explain
from tests.store.statistics import HONEST, SMALL, STATES, TABLES, Fields, Size, Work, add_work

#: Settings that a host's connection has, and that the broker's own ones turn off.
PLAIN = {"enable_seqscan": "on", "enable_bitmapscan": "on", "enable_sort": "on"}

#: For the session that fills the tables.
PATIENT = {"statement_timeout": "0", "synchronous_commit": "off"}


class Scene:
    """One state of the tables, with a connection as the broker makes it and one without its insurance.

    Args:
        name: of the state.
        size: how large the tables are.
        empties: tables that hold nothing at the start; the others are left as they are.
        before: called while the tables are still empty.
    """

    def __init__(
        self,
        name: str,
        *,
        size: Size = SMALL,
        empties: Collection[str] = TABLES,
        before: Callable[["Scene"], None] = lambda scene: None,
    ) -> None:
        self.name = name
        assert connection.settings_dict["NAME"].startswith("test_"), "these tests empty the tables"
        self.insured = open_gateway("default", "test plans")
        self.plain = open_gateway("default", "test plain", **PLAIN)
        self.rows = Rows(open_gateway("default", "test rows", **PLAIN, **PATIENT))
        self.fields = Fields(self.insured, self.rows, size, empties)
        before(self)
        STATES[name](self.fields)
        self.work: Work = add_work(self.fields)
        if name in HONEST:
            self.fields.analyse()
        self.running = self.rows.one("select count(*) from pgbroker.job where state = 1")

    def explain(self, gateway: Gateway, name: str, mode: str) -> Plan:
        """Run a statement on one of the connections, with a ``custom`` or a ``generic`` plan, and take it back."""
        gateway.connection.execute(f"set plan_cache_mode = force_{mode}_plan")
        return explain(gateway, name, self.work.params[name])

    def close(self) -> None:
        """Undo what was done to the tables, and disconnect."""
        self.fields.restore()
        for each in (self.insured, self.plain, self.rows.gateway):
            each.connection.close()
