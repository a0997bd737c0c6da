"""A process with wrong settings of the broker does not start, whatever it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "code",
    [
        "from django.core.wsgi import get_wsgi_application; get_wsgi_application()",
        "from django.core.asgi import get_asgi_application; get_asgi_application()",
        "from django.core.management import execute_from_command_line as run; run(['manage.py', 'check'])",
    ],
    ids=["wsgi", "asgi", "manage.py"],
)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{}", None),
        ("{'LEASE_SECOND': 60}", "PGBROKER has no key 'LEASE_SECOND'. Did you mean 'LEASE_SECONDS'"),
        ("{'DATABASE': 'job'}", "PGBROKER['DATABASE'] is 'job', which is no alias in DATABASES"),
    ],
    ids=["right", "unknown key", "unknown alias"],
)
def test_a_process_starts_with_right_settings_and_with_wrong_ones_stops_at_once_with_the_way_out(
    tmp_path: Path, code: str, value: str, message: str | None
) -> None:
    (tmp_path / "own_settings.py").write_text(f"from example_project.settings import *\nPGBROKER = {value}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "own_settings", "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    if message is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1
        assert f"ConfigurationError: {message}" in done.stderr.splitlines()[-1]
