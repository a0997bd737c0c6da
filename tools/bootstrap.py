"""Build the project's environment. Called by the Makefile and .ci/run before anything else.

Standard library only, and plain enough for Python 3.8: this file runs under whatever python3 the machine has,
finds a Python 3.12 or newer, and installs the compiled requirements with uv.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import glob
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
OLDEST_PYTHON = (3, 12)
OLDEST_UV = (0, 9)
PROBE = "import sys; print(*sys.version_info[:3]); print(sys.executable)"


class Interpreter(NamedTuple):
    """A Python that answered: its version and the path it calls itself."""

    version: tuple[int, int, int]
    path: str


class BootstrapError(Exception):
    """The environment cannot be built; the message says why and what to do next."""


def main(arguments: Optional[list[str]] = None) -> int:
    """Make the environment current; return 0, or 1 after printing what is missing."""
    options = parse(arguments)
    venv = ROOT / options.venv
    requirements = ROOT / options.requirements
    try:
        if is_current(venv, requirements, options.python):
            return 0
        TOOLS.mkdir(exist_ok=True)
        with open(TOOLS / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_current(venv, requirements, options.python):
                build(venv, requirements, options.python)
    except (BootstrapError, PermissionError) as error:
        print("bootstrap: {}".format(explain(error)), file=sys.stderr)
        return 1
    return 0


def parse(arguments: Optional[list[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build the project's environment.")
    parser.add_argument("--venv", default=".venv", help="folder of the environment, below the clone")
    parser.add_argument("--requirements", default="requirements/dev.txt", help="compiled requirements, below the clone")
    parser.add_argument("--python", default=os.environ.get("PYTHON", ""), help="interpreter to use, not to be searched")
    return parser.parse_args(arguments)


def is_current(venv: Path, requirements: Path, named: str) -> bool:
    """Tell whether ``venv`` was built from these requirements, here, and with the interpreter ``named``, if any."""
    try:
        stamp = json.loads((venv / "bootstrap.json").read_text())
    except (OSError, ValueError):
        return False
    if stamp.get("key") != key_of(requirements):
        return False
    if named:
        wanted, _ = probe(named)
        if wanted is None or os.path.realpath(wanted.path) != stamp.get("python"):
            return False
    return probe(str(venv / "bin" / "python"))[0] is not None


def key_of(requirements: Path) -> str:
    # The place counts too: the scripts of an environment name its full path, so a moved clone is stale.
    return hashlib.sha256(requirements.read_bytes() + os.fsencode(ROOT)).hexdigest()


def build(venv: Path, requirements: Path, named: str) -> None:
    """Install ``requirements`` into a fresh ``venv``."""
    if venv.exists() and not os.access(venv, os.W_OK):
        raise PermissionError(errno.EACCES, "not ours to rebuild", str(venv))
    uv = find_uv() or install_uv()
    interpreter = named_interpreter(named) if named else find_interpreter(uv)
    say("building {} with Python {}.{}.{}".format(venv.relative_to(ROOT), *interpreter.version))
    if (venv / "bootstrap.json").exists():
        (venv / "bootstrap.json").unlink()
    run_uv(uv, "venv", "--quiet", "--no-config", "--clear", "--python", interpreter.path, str(venv))
    python = str(venv / "bin" / "python")
    run_uv(uv, "pip", "install", "--quiet", "--python", python, "--requirement", str(requirements))
    stamp = {"key": key_of(requirements), "python": os.path.realpath(interpreter.path)}
    (venv / "bootstrap.json").write_text(json.dumps(stamp))


# uv: the one on the machine, else one of our own


def find_uv() -> Optional[str]:
    """Return a uv that runs and is new enough: from ``UV``, from PATH, or the one an earlier call installed."""
    own = [str(TOOLS / folder / "bin" / "uv") for folder in ("uv", "uv-target")]
    for candidate in (os.environ.get("UV"), shutil.which("uv"), *own):
        if candidate and uv_version(candidate) >= OLDEST_UV:
            return candidate
    return None


def uv_version(uv: str) -> tuple[int, ...]:
    numbers = re.match(r"uv (\d+)\.(\d+)", run([uv, "--version"]).stdout)
    return tuple(int(number) for number in numbers.groups()) if numbers else ()


def install_uv() -> str:
    """Install uv into ``.tools/``, with venv where the system has it, else with pip alone.

    Raises:
        BootstrapError: neither venv nor pip is there, or the package registry cannot be reached.
    """
    say("installing uv into .tools/")
    folder = TOOLS / "uv"
    made = run([sys.executable, "-m", "venv", "--clear", str(folder)])
    if made.returncode == 0:
        command = [str(folder / "bin" / "python"), "-m", "pip", "install"]
    elif run([sys.executable, "-m", "pip", "--version"]).returncode == 0:
        # Debian without python3-venv: a target folder needs no environment and is allowed on a managed Python.
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--target", str(TOOLS / "uv-target"), "--upgrade"]
    else:
        raise BootstrapError(
            "this Python has neither venv nor pip.\n{}\n"
            "Next: `apt-get install python3-venv python3-pip` (or your system's packages of that kind), "
            "or install uv and put it on PATH.".format(last_lines(made.stdout + made.stderr))
        )
    done = run([*command, "--quiet", "--disable-pip-version-check", "uv>={}.{}".format(*OLDEST_UV)])
    found = find_uv()
    if found is None:
        raise BootstrapError(
            "uv could not be installed.\n{}\nNext: check the connection to the package registry (pip's settings are "
            "honoured), or install uv and put it on PATH.".format(last_lines(done.stdout + done.stderr))
        )
    return found


def run_uv(uv: str, *arguments: str) -> None:
    done = run([uv, *arguments])
    if done.returncode:
        text = last_lines(done.stdout + done.stderr)
        raise BootstrapError("`uv {}` failed.\n{}".format(" ".join(arguments[:2]).replace(" --quiet", ""), text))


def uv_environment() -> dict[str, str]:
    """Return the environment for uv, which should reach the package registry wherever pip does."""
    environment = {
        # Without it uv trusts only the roots it brings, and fails behind a proxy of the company.
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",
        **os.environ,
        "UV_PYTHON_DOWNLOADS": "manual",
    }
    if os.environ.get("PIP_INDEX_URL"):
        environment.setdefault("UV_DEFAULT_INDEX", os.environ["PIP_INDEX_URL"])
    return environment


# Python 3.12 or newer


def named_interpreter(named: str) -> Interpreter:
    """Return the interpreter that the caller named.

    Raises:
        BootstrapError: it does not run (with its own words), or it is too old.
    """
    found, complaint = probe(named)
    if found is None:
        raise BootstrapError("PYTHON={} does not run.\n{}\nNext: name another, or none.".format(named, complaint))
    if found.version < OLDEST_PYTHON:
        raise BootstrapError(
            "PYTHON={} is Python {}.{}.{}, and 3.12 or newer is needed.\nNext: name another, or none.".format(
                named, *found.version
            )
        )
    return found


def find_interpreter(uv: str) -> Interpreter:
    """Return the first Python 3.12 or newer that really runs.

    Raises:
        BootstrapError: there is none, and uv could not fetch one.
    """
    seen = []
    for candidate in candidates():
        found, _ = probe(candidate)
        if found is None:
            continue
        if found.version >= OLDEST_PYTHON:
            return found
        seen.append("{} is {}.{}.{}".format(candidate, *found.version))
    return downloaded_interpreter(uv, seen)


def candidates() -> Iterator[str]:
    """Yield interpreters from the likeliest on; those of pyenv and uv are often not on PATH."""
    yield sys.executable
    for name in ("python3.13", "python3.12", "python3.14"):
        found = shutil.which(name)
        if found:
            yield found
    home = os.path.expanduser("~")
    for pattern in (".pyenv/versions/3.1[2-9]*/bin/python3", ".local/share/uv/python/cpython-3.1[2-9]*/bin/python3"):
        yield from sorted(glob.glob(os.path.join(glob.escape(home), pattern)), reverse=True)


def downloaded_interpreter(uv: str, seen: list[str]) -> Interpreter:
    say("no Python 3.12 or newer found; asking uv to fetch one (about ten seconds where that is not possible)")
    done = run([uv, "python", "install", "3.13"], seconds=600)
    place = run([uv, "python", "find", "3.13"]).stdout.strip()
    found = probe(place)[0] if place else None
    if found is None:
        raise BootstrapError(
            "no Python 3.12 or newer was found ({}), and uv could not fetch one.\n{}\n"
            "Next: name one with `make … PYTHON=/path/to/python3.12`, or install one: the system's package "
            "(`apt-get install python3.13` on Debian 13), or pyenv.".format(
                "; ".join(seen) or "none at all", last_lines(done.stdout + done.stderr, 3)
            )
        )
    return found


def probe(python: str) -> tuple[Optional[Interpreter], str]:
    """Run ``python``; return what it is, or None and its complaint. Existing is not enough: pyenv's shims exit 127."""
    done = run([python, "-I", "-S", "-c", PROBE])
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != 2:
        return None, last_lines(done.stdout + done.stderr) or "  exit status {}".format(done.returncode)
    major, minor, micro = lines[0].split()
    return Interpreter((int(major), int(minor), int(micro)), lines[1]), ""


# Small pieces


def run(command: list[str], seconds: float = 900) -> subprocess.CompletedProcess[str]:
    """Run ``command`` quietly; one that is not there, or takes too long, answers like one that fails."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            env=uv_environment(),
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def last_lines(text: str, count: int = 12) -> str:
    """Return the end of what a program printed, without pip's remarks on folders that a machine's settings name."""
    lines = [line for line in text.strip().splitlines() if "it is neither a file nor a directory" not in line]
    return "\n".join("  " + line for line in lines[-count:])


def explain(error: Exception) -> str:
    """Say who owns the path in the way: the usual cause is an environment that root built."""
    path = getattr(error, "filename", None)
    if not isinstance(error, PermissionError) or path is None:
        return str(error)
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    return "{}\n{} owns {}.\nNext: remove it as that user (`make clean`), or run as that user.".format(
        error, owner_of(place), place
    )


def owner_of(path: Path) -> str:
    uid = path.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "user {}".format(uid)


def say(text: str) -> None:
    print("bootstrap: {}".format(text), file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
