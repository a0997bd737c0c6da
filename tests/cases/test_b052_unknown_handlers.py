"""B052, B058, B084: a stored name that no job type has is never looked up as code; its job waits in plain sight."""

import ast
import json
from pathlib import Path

import pytest

import django_pgbroker
from django_pgbroker.domain.states import JobState, ParkedReason
from django_pgbroker.models import Execution, Job
from tests.cases import jobs
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs as scenario

PACKAGE = Path(django_pgbroker.__file__).parent

#: Modules that turn stored bytes into objects or code, and names that turn text into code.
LOADERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "jsonpickle", "runpy"}
EVALUATORS = {"eval", "exec", "compile", "__import__", "import_module", "import_string", "load_module", "loads_pickle"}


def store(rows, name, arguments):
    """A job as somebody with write access to the tables would put it there."""
    job_id = rows.job(rows.queue(), job_type_id=rows.job_type(name))
    rows.run("update pgbroker.job_payload set arguments = %s::jsonb where job_id = %s", json.dumps(arguments), job_id)
    return job_id


@pytest.fixture
def hostile(tmp_path):
    """Names with arguments that would leave a mark if they were run or imported."""
    mark = tmp_path / "mark"
    (tmp_path / "raises_on_import.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise RuntimeError\n")
    touch = f"touch {mark}"
    names = {
        "os.system": {"command": touch},
        "builtins.eval": {"source": f"__import__('os').system({touch!r})"},
        "subprocess.call": {"args": ["touch", str(mark)]},
        "__main__.f": {},
        "no.such.mod.f": {},
        "raises_on_import.f": {},
        "string.digits": {},
    }
    return mark, names


def test_b052_b084_such_jobs_stand_aside_with_a_reason_and_the_good_one_behind_them_runs(
    start_process, story, rows, hostile, monkeypatch
):
    mark, names = hostile
    monkeypatch.setenv("PYTHONPATH", f"{mark.parent}")
    ids = {name: store(rows, name, arguments) for name, arguments in names.items()}
    good = story.enqueue(scenario.quick)
    worker = start_process("--concurrency", "1")

    wait_until(lambda: good.status() is JobState.COMPLETED, "the good one runs")
    wait_until(lambda: {rows.state_of(each) for each in ids.values()} == {JobState.PARKED}, "the others stand aside")

    assert set(Job.objects.values_list("parked_reason", "attempt")) == {(ParkedReason.UNKNOWN_TYPE, 0)}
    assert not Execution.objects.exclude(job_id=good.id).exists()
    for name in names:
        assert worker.says(f"job_type={name}") or worker.says(name), "people are told"
    assert not mark.exists()
    assert worker.lives


def test_b058_a_job_of_a_newer_release_waits_for_a_worker_that_knows_it(start_process, story, rows):
    older = start_process("--concurrency", "1")
    handle = story.enqueue(jobs.known_here)
    wait_until(lambda: handle.status() is JobState.PARKED, "the older release lets it stand aside")
    beside = story.enqueue(scenario.quick)
    wait_until(lambda: beside.status() is JobState.COMPLETED, "and goes on")

    newer = start_process("--concurrency", "1", "--settings", "tests.cases.settings")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the newer one takes it")

    assert Execution.objects.get(job_id=handle.id).attempt == 1
    assert rows.one("select process_id from effect where job_id = %s", handle.id) == newer.pid
    assert older.lives


def offences(text):
    """What in this source could make code or objects of stored text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from LOADERS & {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            yield from LOADERS & {(node.module or "").partition(".")[0]}
            yield from EVALUATORS & {alias.name for alias in node.names}
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                yield from EVALUATORS & {called.id}
            elif isinstance(called, ast.Attribute) and ast.unparse(called.value) != "re":
                yield from EVALUATORS & {called.attr}


#: What they load is named by the project's settings or by the running program itself, never by a row of the database.
NAMED_BY_THE_PROJECT = {
    "plugins.py": {"import_string"},  # PGBROKER["MIDDLEWARE"]
    "operations/permissions.py": {"import_string"},  # PGBROKER["PERMISSION_HOOK"]
    "worker/child.py": {"import_module"},  # the module of a handler that the worker has imported
    "worker/child_frames.py": {"pickle"},  # over a socket between a worker and its own child
    "bench/worker_process.py": {"import_module"},  # a module of the package
}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_b084_nothing_in_the_package_makes_code_of_text(path):
    allowed = NAMED_BY_THE_PROJECT.get(str(path.relative_to(PACKAGE)), set())
    assert set(offences(path.read_text())) == allowed


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from yaml import load", "eval(x)", "importlib.import_module(x)", "builtins.exec(x)",
        "from django.utils.module_loading import import_string",
    ],
)  # fmt: skip
def test_b084_the_search_above_finds_what_it_is_for(text):
    assert list(offences(text))
