"""The processes of a drill and the database they work on; checks the history of all jobs at the end."""

import signal
from typing import Any

import psycopg

from tests.drills import crash_points
from tests.drills.history import find_faults, find_silent_refusals
from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import ManageProcess

TABLES = """
create table if not exists effect (
    id bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
    job_id bigint not null, lease_token bigint not null, process_id int not null, what text not null
);
create index if not exists effect_claim on effect (job_id, lease_token);
create table if not exists gate (name text primary key);
"""

_SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.drills.settings"}

_UNFINISHED = "select count(*) from pgbroker.job"


class Crew:
    """Workers, producers and reapers on one database.

    Args:
        database: its entry of ``DATABASES``; it is migrated.
        settings: changes to the broker's settings in every process.
    """

    def __init__(self, database: dict[str, Any], settings: dict[str, Any] | None = None) -> None:
        self.database = database
        self.settings = settings or {}
        self.processes: list[ManageProcess] = []
        self.job_ids: list[int] = []
        self._reader = self.connect()
        self.run(TABLES)

    # ------------------------------------------------------------------------------------------------ processes

    def start(self, *arguments: str, crash: str = "", database: dict[str, Any] | None = None) -> ManageProcess:
        """Start a command of ``manage.py`` and do not wait for it.

        Args:
            arguments: the command and its options.
            crash: a point of ``crash_points`` and how often it is passed, as in ``judged:3``.
            database: another way to the same database.
        """
        more = {**_SETTINGS, crash_points.VARIABLE: crash}
        process = ManageProcess(arguments, self.settings, database or self.database, more)
        self.processes.append(process)
        return process

    def start_worker(self, *arguments: str, crash: str = "", **options: Any) -> ManageProcess:
        return self.start("pgbroker_worker", *arguments, crash=crash, **options)

    def end(self) -> None:
        """Kill what is left."""
        for process in self.processes:
            process.kill()
        self._reader.close()

    # ------------------------------------------------------------------------------------------------ database

    def connect(self) -> psycopg.Connection[Any]:
        names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "NAME": "dbname"}
        params = {names[key]: value for key, value in self.database.items() if key in names and value}
        return psycopg.connect(**params, autocommit=True)

    def run(self, text: str, *params: Any) -> None:
        with self.connect() as connection:
            connection.execute(text, params or None)

    def one(self, text: str, *params: Any) -> Any:
        """The first column of the first row, or None."""
        try:
            row = self._reader.execute(text, params or None).fetchone()
        except psycopg.OperationalError:
            # the server was stopped on purpose
            self._reader = self.connect()
            row = self._reader.execute(text, params or None).fetchone()
        return row[0] if row else None

    def count(self, what: str) -> int:
        """How often handlers have told this."""
        return int(self.one("select count(*) from effect where what = %s", what))

    # ------------------------------------------------------------------------------------------------ the end

    def finish(self, seconds: float = 60) -> None:
        """Wait until no job is left, and stop the workers that live by a signal."""
        wait_until(lambda: not self.one(_UNFINISHED), "every job is finished", seconds)
        workers = [process for process in self.processes if process.lives]
        for worker in workers:
            worker.send(signal.SIGTERM)
        for worker in workers:
            assert worker.wait(30) == 0, worker.output

    def check(self) -> None:
        """Fail if the tables or the logs tell of anything that must not happen."""
        survivors = [process for process in self.processes if process.process.poll() == 0]
        with self.connect() as connection:
            faults = find_faults(connection, self.job_ids) + find_silent_refusals(connection, survivors)
        assert not faults, "\n".join(faults)

    def show(self) -> None:
        """Print what the processes said; pytest shows it where a test fails."""
        for process in self.processes:
            if process.output:
                print(f"--- {process.pid}: {process.process.poll()}\n{process.output[-6000:]}")  # noqa: T201
