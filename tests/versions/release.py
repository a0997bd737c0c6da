"""An earlier release beside the working tree: its wheel is built from git and used by projects of its own."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: A tag or commit to take instead of the newest release tag before this commit.
VARIABLE = "EARLIER_RELEASE"

SETTINGS = """
import json, os
SECRET_KEY = "for-tests-only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_pgbroker", "shop"]
DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
PGBROKER = {"LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.5, "RECLAIM_INTERVAL_SECONDS": 0.2, "POLL_MAX_SECONDS": 0.5}
LOGGING = {
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"django_pgbroker": {"handlers": ["console"], "level": "INFO"}},
}
"""

JOBS = """
import os, time
from django.db import connection
from django_pgbroker import Constant, current_job, job

def tell(what):
    ctx = current_job()
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into effect (job_id, lease_token, process_id, what) values (%s, %s, %s, %s)",
            [ctx.id, ctx.lease_token, os.getpid(), what],
        )

@job("shop.pack", retry=Constant(0), max_attempts=100)
def pack(number):
    tell("begun")
    time.sleep(0.002)
    if number % 10 == 0 and current_job().attempt == 1:
        raise ValueError("packed badly")
    tell("done")
    return number
"""

PRODUCE = """
import django_pgbroker
from shop.jobs import pack
print("package", django_pgbroker.__file__)
for number in range({count}):
    print("job", pack.enqueue(number=number).id, flush=True)
"""


def find_earlier_release() -> str | None:
    """The tag or commit to compare with; None when nothing was released before this commit."""
    if named := os.environ.get(VARIABLE):
        return named
    found = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip() or None


def build_release(reference: str, workshop: Path) -> Path:
    """Build the wheel of ``reference`` and unpack it; answers the folder to import it from.

    It runs with the Django and psycopg of this environment, so nothing is downloaded.
    """
    source, package = workshop / "source", workshop / "package"
    source.mkdir()
    archive = workshop / "source.tar"
    _run(["git", "archive", "--output", str(archive), reference], ROOT)
    _run(["tar", "-xf", str(archive)], source)
    _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(workshop)], source)
    (wheel,) = workshop.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(package)
    return package


def migration_names(package: Path) -> set[str]:
    """The migrations in a folder that holds the package."""
    return {path.stem for path in (package / "django_pgbroker/migrations").glob("0*.py")}


class Shop:
    """A project that imports the broker from one folder.

    Args:
        folder: where the project is made.
        package: the folder that holds ``django_pgbroker``.
        database: its entry of ``DATABASES``.
    """

    def __init__(self, folder: Path, package: Path, database: dict[str, Any]) -> None:
        (folder / "shop").mkdir(parents=True)
        (folder / "shop/__init__.py").touch()
        (folder / "shop/jobs.py").write_text(JOBS)
        (folder / "shop_settings.py").write_text(SETTINGS)
        self._folder, self._package, self._database = folder, package, database

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start ``django-admin`` with the project's settings; its output is kept in a file beside the project."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self._package}{os.pathsep}{self._folder}",
            "DJANGO_SETTINGS_MODULE": "shop_settings",
            "SHOP_DATABASE": json.dumps(self._database),
        }
        log = (self._folder / f"{arguments[0]}.log").open("a+")
        process = subprocess.Popen(
            [sys.executable, "-m", "django", *arguments],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        log.close()
        return process

    def run(self, *arguments: str) -> str:
        """Run it to a good end and return what it printed."""
        process = self.start(*arguments)
        assert process.wait(60) == 0, self.read(arguments[0])
        return self.read(arguments[0])

    def read(self, command: str) -> str:
        """What the runs of a command have printed so far."""
        return (self._folder / f"{command}.log").read_text()

    def produce(self, count: int) -> list[int]:
        """Enqueue jobs and return their ids."""
        printed = self.run("shell", "-c", PRODUCE.format(count=count))
        assert f"package {self._package}" in printed, printed
        return [int(line.split()[1]) for line in printed.splitlines() if line.startswith("job ")]


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout}"
