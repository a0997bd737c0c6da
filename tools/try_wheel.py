"""Build the wheel, install it into a clean environment, and run a job there. Called by .ci/run, with the dev Python.

The project it makes has one settings file and one job; its database is made on the embedded server and dropped.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import bootstrap
import psycopg
from psycopg import sql

sys.path.insert(0, str(bootstrap.ROOT))

from example_project import embedded

SETTINGS = """
SECRET_KEY = "only for this trial"
INSTALLED_APPS = ["django_pgbroker", "shop"]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "HOST": {host!r}, "PORT": {port!r},
                           "USER": {user!r}, "NAME": {name!r}}}}}
USE_TZ = True
"""
JOBS = """
from django_pgbroker import job
@job("shop.add")
def add(left, right): return left + right
"""
ENQUEUE = """
from django_pgbroker import enqueue
import django_pgbroker
handle = enqueue("shop.add", {"left": 40, "right": 2})
print(handle.id, django_pgbroker.__file__)
"""
READ = """
from django_pgbroker import JobHandle
handle = JobHandle({job_id})
print(handle.status().name, handle.result())
"""


def main() -> None:
    """Do it all; stop with a traceback or a message at the first thing that is not right."""
    with tempfile.TemporaryDirectory(prefix="pgbroker wheel ") as folder:
        workshop = Path(folder)
        wheel = build_wheel(workshop)
        check_contents(wheel)
        python = install(wheel, workshop)
        run_a_job(python, workshop)


def build_wheel(workshop: Path) -> Path:
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(workshop), cwd=bootstrap.ROOT)
    (wheel,) = workshop.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Compare the wheel with the files of the package: templates and statements too, and nothing else."""
    files = [path for path in (bootstrap.ROOT / "django_pgbroker").rglob("*") if path.is_file()]
    source = {str(path.relative_to(bootstrap.ROOT)) for path in files if path.parent.name != "__pycache__"}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    missing, foreign = source - packed, packed - source
    if missing or foreign:
        sys.exit(f"{wheel.name}: missing {sorted(missing)}, not of the package {sorted(foreign)}")
    print(f"{wheel.name}: {len(packed)} files, those of the package and no others")


def install(wheel: Path, workshop: Path) -> Path:
    uv = bootstrap.find_uv() or bootstrap.install_uv()
    environment = workshop / "clean"
    bootstrap.run_uv(uv, "venv", "--quiet", "--no-config", "--python", sys.executable, str(environment))
    python = environment / "bin" / "python"
    bootstrap.run_uv(uv, "pip", "install", "--quiet", "--python", str(python), str(wheel), "psycopg[binary]")
    return python


def run_a_job(python: Path, workshop: Path) -> None:
    address = embedded.attach()
    name = f"pgbroker_wheel_{os.getpid()}"
    connect = {"host": address.host, "port": address.port, "user": address.user, "dbname": address.database}
    with psycopg.connect(**connect, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            project = make_project(workshop, SETTINGS.format(name=name, **address._asdict()))
            try_project(str(python), project)
        finally:
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def make_project(workshop: Path, settings: str) -> Path:
    project = workshop / "project"
    (project / "shop").mkdir(parents=True)
    (project / "shop/__init__.py").touch()
    (project / "shop/jobs.py").write_text(JOBS)
    (project / "settings.py").write_text(settings)
    return project


def try_project(python: str, project: Path) -> None:
    def manage(*arguments: str) -> str:
        return run(python, "-m", "django", *arguments, cwd=project)

    manage("migrate")
    job_id, package = manage("shell", "--no-imports", "-c", ENQUEUE).split(maxsplit=1)
    if not package.startswith(str(Path(python).parent.parent)):
        sys.exit(f"the package was imported from {package}, not from the clean environment")
    manage("pgbroker_worker", "--until-empty")
    answer = manage("shell", "--no-imports", "-c", READ.format(job_id=job_id)).strip()
    if answer != "COMPLETED 42":
        sys.exit(f"job {job_id} of the clean project should be COMPLETED 42, and is {answer}")
    print(f"a clean project of {len(JOBS.splitlines()) - 1} lines ran its job: {answer}")


def run(*command: str, cwd: Path) -> str:
    """Run ``command`` in ``cwd`` without the settings of this project; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "DATABASE_URL"}}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**environment, "DJANGO_SETTINGS_MODULE": "settings"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
