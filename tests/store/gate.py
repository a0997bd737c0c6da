"""Hold one connection's statement in mid-execution: after its snapshot, before it locks rows."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django_pgbroker.store.gateway import Gateway
from tests.maintenance.rows import Rows
from tests.maintenance.waiting import wait_until

_LOCK = 20_261_130

# Volatile, so that the planner does not call it: the wait is in the execution, whose snapshot has been taken by then.
_WAITING_CLOCK = f"""
create or replace function pgbroker.clock() returns timestamptz language plpgsql volatile as $$
begin
    if current_setting('pgbroker_test.gate', true) = 'shut' then
        perform pg_advisory_lock_shared({_LOCK}), pg_advisory_unlock_shared({_LOCK});
    end if;
    return statement_timestamp();
end $$
"""


class Gate:
    """Replaces the broker's clock by one at which chosen connections wait.

    Args:
        rows: a connection that is not to be held.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._original = rows.one("select pg_get_functiondef('pgbroker.clock()'::regprocedure)")
        rows.run(_WAITING_CLOCK)

    @contextmanager
    def held(self, gateway: Gateway, call: Callable[[], Any]) -> Iterator[Future[Any]]:
        """Run ``call`` in a thread, and the block while its statement on ``gateway`` waits; then let it go on.

        The future is done after the block.
        """
        backend = gateway.connection.info.backend_pid
        gateway.connection.execute("select set_config('pgbroker_test.gate', 'shut', false)")
        self.rows.run("select pg_advisory_lock(%s)", _LOCK)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(call)
            try:
                wait_until(lambda: answer.done() or self._is_waiting(backend), "the statement waits at the gate")
                assert not answer.done(), f"the statement passed the gate: {answer.exception() or answer.result()}"
                yield answer
            finally:
                self.rows.run("select pg_advisory_unlock(%s)", _LOCK)
            answer.exception(timeout=15)
        if not gateway.connection.closed:
            gateway.connection.execute("select set_config('pgbroker_test.gate', '', false)")

    def remove(self) -> None:
        """The clock as it was."""
        self.rows.run(self._original)

    def _is_waiting(self, backend: int) -> bool:
        return bool(
            self.rows.one("select true from pg_locks where pid = %s and locktype = 'advisory' and not granted", backend)
        )
