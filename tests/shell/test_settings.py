"""The settings and manage.py of the example project, as separate processes see them."""

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


def run_python(*arguments: str, cwd: Path = SOURCE, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def show(expression: str, **environment: str) -> str:
    done = run_python("-c", f"from example_project import settings; print({expression})", **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_reading_the_settings_and_the_models_starts_no_server() -> None:
    code = (
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "from example_project.embedded import users\n"
        "print(connection.vendor, len(users._held_locks))"
    )

    assert run_python("-c", code, DATABASE_URL="").stdout == "postgresql 0\n"


def test_database_url_names_another_server() -> None:
    url = "postgres://someone:secret@db.example.org:6543/shop"

    shown = show("[settings.DATABASES['default'][key] for key in ('ENGINE', 'HOST', 'PORT', 'USER')]", DATABASE_URL=url)

    assert shown == "['django.db.backends.postgresql', 'db.example.org', 6543, 'someone']"


def test_without_debug_a_secret_key_must_be_given() -> None:
    refused = run_python("-c", "import example_project.settings", DEBUG="False")

    assert refused.returncode == 1
    assert "SECRET_KEY" in refused.stderr
    assert show("settings.SECRET_KEY", DEBUG="False", SECRET_KEY="given") == "given"


def test_secrets_may_lie_in_files_which_win_over_the_environment(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgres://someone:s%2Fecret@db.example.org:6543/shop\n")
    (tmp_path / "key").write_text("from a file\n")
    files = {"DATABASE_URL_FILE": str(tmp_path / "url"), "SECRET_KEY_FILE": str(tmp_path / "key")}
    shown = "settings.DATABASES['default']['PASSWORD'], settings.DATABASES['default']['NAME'], settings.SECRET_KEY"

    assert show(f"[{shown}]", DEBUG="False", SECRET_KEY="other", **files) == "['s/ecret', 'shop', 'from a file']"


def test_a_secret_file_that_is_not_there_stops_the_start() -> None:
    refused = run_python("-c", "import example_project.settings", DATABASE_URL_FILE="/nowhere/url")

    assert refused.returncode == 1
    assert "/nowhere/url" in refused.stderr


def test_manage_py_reaches_the_embedded_server_from_any_folder_whatever_the_variables_of_libpq_say(
    tmp_path: Path,
) -> None:
    stray = {"PGPORT": "1234", "PGHOST": "nowhere.example.org", "PGUSER": "somebody", "PGDATABASE": "other"}
    command = [str(SOURCE / "manage.py"), "dbshell", "--", "-Atc", "select current_database(), current_user"]

    done = run_python(*command, cwd=tmp_path, DATABASE_URL="", **stray)

    assert (done.stdout, done.stderr) == ("pgbroker|postgres\n", "")
