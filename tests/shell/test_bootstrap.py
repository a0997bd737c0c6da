"""tools/bootstrap.py as people call it: a process of its own in a clone, with the interpreters and the uv it finds."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[2]
SHIM = '#!/bin/sh\necho "pyenv: python3.13: command not found" >&2\nexit 127\n'


@pytest.fixture(scope="module")
def uv() -> str:
    """The uv that built this environment."""
    found = bootstrap_of(SOURCE).find_uv()
    if found is None:
        pytest.skip("no uv on PATH or in .tools/: this environment was not built by tools/bootstrap.py")
    return str(found)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone under a path with a space, which requires no package: nothing is fetched."""
    folder = tmp_path / "a clone"
    (folder / "tools").mkdir(parents=True)
    shutil.copy(SOURCE / "tools/bootstrap.py", folder / "tools")
    shutil.copy(SOURCE / "Makefile", folder)
    (folder / "requirements").mkdir()
    (folder / "requirements/dev.txt").write_text("")
    return folder


def bootstrap_of(clone: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", clone / "tools/bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(clone: Path, uv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/bootstrap.py"],
        cwd=clone,
        env={**os.environ, "PYTHON": "", "UV": uv, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def make_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_python(path: Path, version: str) -> Path:
    """Make a program that answers the bootstrap's question as a Python of that version would."""
    return make_program(path, f"#!/bin/sh\necho '{version}'\necho '{path}'\n")


def test_the_environment_runs_and_a_second_call_does_nothing(clone: Path, uv: str) -> None:
    first = call(clone, uv)
    assert first.returncode == 0, first.stderr
    python = clone / ".venv/bin/python"
    version = subprocess.check_output([python, "-c", "import sys; print(sys.version_info >= (3, 12))"], text=True)
    assert version == "True\n"

    built = (clone / ".venv/bootstrap.json").stat().st_mtime_ns
    second = call(clone, "/no/uv", PATH="/usr/bin:/bin")

    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert (clone / ".venv/bootstrap.json").stat().st_mtime_ns == built


@pytest.mark.parametrize("change", ["the requirements change", "the clone moves", "the interpreter is gone"])
def test_the_environment_is_built_again_when(change: str, clone: Path, uv: str) -> None:
    assert call(clone, uv).returncode == 0
    if change == "the requirements change":
        (clone / "requirements/dev.txt").write_text("# still nothing\n")
    elif change == "the clone moves":
        clone = clone.rename(clone.with_name("a moved clone"))
    else:
        (clone / ".venv/bin/python").unlink()

    again = call(clone, uv)

    assert again.returncode == 0, again.stderr
    assert "building .venv" in again.stderr
    assert subprocess.run([clone / ".venv/bin/python", "-c", ""], check=False).returncode == 0


def test_a_half_built_environment_is_built_again(clone: Path, uv: str) -> None:
    (clone / "requirements/dev.txt").write_text("./no-such-package\n")
    failed = call(clone, uv)
    assert failed.returncode == 1
    assert "no-such-package" in failed.stderr

    (clone / "requirements/dev.txt").write_text("")

    assert call(clone, uv).returncode == 0


def test_a_named_interpreter_that_does_not_run_is_reported_in_its_own_words(
    clone: Path, uv: str, tmp_path: Path
) -> None:
    broken = make_program(tmp_path / "python", "#!/bin/sh\necho 'libpython3.13.so.1.0: cannot open' >&2\nexit 127\n")

    answer = call(clone, uv, PYTHON=str(broken))

    assert answer.returncode == 1
    assert f"PYTHON={broken} does not run" in answer.stderr
    assert "libpython3.13.so.1.0: cannot open" in answer.stderr
    assert "3.11" not in answer.stderr


def test_a_named_interpreter_that_is_too_old_is_refused_with_its_version(clone: Path, uv: str, tmp_path: Path) -> None:
    old = make_python(tmp_path / "python", "3 11 7")

    answer = call(clone, uv, PYTHON=str(old))

    assert answer.returncode == 1
    assert f"PYTHON={old} is Python 3.11.7, and 3.12 or newer is needed" in answer.stderr


def test_make_hands_the_named_interpreter_on_and_fails_with_the_bootstrap(clone: Path, uv: str) -> None:
    answer = subprocess.run(
        ["make", "test", "PYTHON=/no/python"],
        cwd=clone,
        env={**os.environ, "UV": uv},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 2
    assert "PYTHON=/no/python does not run" in answer.stderr


def test_another_named_interpreter_means_another_environment(clone: Path, uv: str) -> None:
    assert call(clone, uv).returncode == 0
    stamp = clone / ".venv/bootstrap.json"
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "python": "/another/python3"}))

    assert call(clone, uv).stderr == ""
    assert "building .venv" in call(clone, uv, PYTHON=sys.executable).stderr
    assert call(clone, uv, PYTHON=sys.executable).stderr == ""


def test_an_interpreter_off_the_path_is_found_behind_shims_that_do_not_run(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_program(tmp_path / "bin/python3.13", SHIM)
    make_python(tmp_path / ".pyenv/versions/3.9.18/bin/python3", "3 9 18")
    wanted = make_python(tmp_path / ".pyenv/versions/3.12.1/bin/python3", "3 12 1")
    bootstrap = bootstrap_of(clone)
    monkeypatch.setattr(sys, "executable", str(make_python(tmp_path / "python3", "3 11 2")))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/no/more")
    monkeypatch.setenv("HOME", str(tmp_path))

    found = bootstrap.find_interpreter("/no/uv")

    assert (found.version, found.path) == ((3, 12, 1), str(wanted))


def test_without_any_new_enough_interpreter_the_message_lists_what_is_there_and_the_ways_out(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = bootstrap_of(clone)
    only = make_python(tmp_path / "python3", "3 11 2")
    monkeypatch.setattr(sys, "executable", str(only))
    monkeypatch.setenv("PATH", "/no/path")
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(bootstrap.BootstrapError) as raised:
        bootstrap.find_interpreter("/no/uv")

    message = str(raised.value)
    assert f"{only} is 3.11.2" in message
    assert "PYTHON=/path/to/python3.12" in message
    assert "apt-get install python3.13" in message


def test_a_uv_that_is_too_old_is_passed_over(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = bootstrap_of(clone)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    uv = make_program(tmp_path / "uv", "#!/bin/sh\necho 'uv 0.4.30 (61ed2a236 2024-11-04)'\n")
    assert bootstrap.find_uv() is None

    make_program(uv, "#!/bin/sh\necho 'uv 0.13.9'\n")
    assert bootstrap.find_uv() == str(uv)


def test_without_venv_and_pip_the_message_names_the_packages_of_the_system(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = bootstrap_of(clone)
    bare = make_program(tmp_path / "python3", "#!/bin/sh\necho 'ensurepip is not available' >&2\nexit 1\n")
    monkeypatch.setattr(sys, "executable", str(bare))

    with pytest.raises(bootstrap.BootstrapError) as raised:
        bootstrap.install_uv()

    assert "ensurepip is not available" in str(raised.value)
    assert "apt-get install python3-venv python3-pip" in str(raised.value)
