"""The embedded PostgreSQL: one per clone, started by the first process that needs it, stopped after the last."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from example_project.embedded.place import (
    UNPRIVILEGED_USER,
    EmbeddedServerError,
    Place,
    make_private_folder,
)
from tests.shell.clones import Clone, as_root, wait_until

on_linux = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")


@on_linux
def test_four_starters_at_once_share_one_server_and_leave_no_process_behind(clone: Clone) -> None:
    starters = [clone.start_to_attach() for _ in range(4)]
    for starter in starters:
        starter.wait_until_attached()

    assert len({starter.ask("select pg_postmaster_start_time()") for starter in starters}) == 1
    assert len(clone.processes("-D")) == 1
    assert len(clone.processes("keep")) == 1

    for starter in starters:
        starter.leave()
    wait_until(lambda: clone.server is None)
    wait_until(lambda: not clone.processes("keep"))


def test_the_server_outlives_all_users_but_the_last_and_stops_when_that_one_is_killed(clone: Clone) -> None:
    first, last = clone.attach(), clone.attach()

    first.die()
    assert last.ask("select 1") == "1"

    last.die()
    wait_until(lambda: clone.server is None)


@on_linux
def test_after_a_killed_keeper_the_next_user_brings_a_new_one(clone: Clone) -> None:
    first = clone.attach()
    (keeper,) = clone.processes("keep")
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not clone.processes("keep"))

    second = clone.attach()
    first.leave()
    second.leave()

    wait_until(lambda: clone.server is None)


def test_a_killed_server_starts_again_although_its_backends_and_its_pid_file_are_left(clone: Clone) -> None:
    user = clone.attach()
    assert user.ask("select count(*) from (select pg_switch_wal()) as some_work") == "1"
    killed = clone.server
    assert killed is not None
    os.kill(killed, signal.SIGKILL)

    assert clone.attach().ask("select 1") == "1"
    assert clone.server not in (None, killed)


def test_a_pid_file_that_names_a_stranger_neither_stops_the_start_nor_harms_the_stranger(clone: Clone) -> None:
    clone.attach().leave()
    wait_until(lambda: clone.server is None)
    as_the_server = {"user": UNPRIVILEGED_USER, "group": pwd.getpwnam(UNPRIVILEGED_USER).pw_gid} if as_root() else {}
    stranger = subprocess.Popen(["sleep", "60"], cwd="/", **as_the_server)
    pid_file = clone.place.data / "postmaster.pid"
    pid_file.write_text(f"{stranger.pid}\n{clone.place.data}\n1700000000\n5432\n{clone.place.run}\n\n0 0\nready\n")
    shutil.copystat(clone.place.data / "PG_VERSION", pid_file)
    try:
        clone.command("stop")
        assert stranger.poll() is None

        assert clone.attach().ask("select 1") == "1"
        clone.command("stop")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_starter_killed_while_it_makes_the_data_does_not_spoil_the_next_start(new_clone: Clone) -> None:
    unlucky = new_clone.start_to_attach()
    wait_until(lambda: list(new_clone.place.home.glob("unfinished-*/PG_VERSION")))
    assert not new_clone.place.data.exists()
    unlucky.die()

    assert new_clone.attach().ask("select 1") == "1"


def test_stop_works_under_a_user_and_the_next_start_finds_the_data(clone: Clone) -> None:
    assert clone.attach().ask("create table kept as select 7 as number; select 1") == "1"

    clone.command("stop")
    assert clone.server is None

    assert clone.attach().ask("select number from kept") == "7"


def test_the_server_is_closed_to_others_and_keeps_its_default_durability(clone: Clone) -> None:
    user = clone.attach()

    assert stat.S_IMODE(clone.place.sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE(clone.place.data.stat().st_mode) == 0o700
    assert user.ask("show listen_addresses") == ""
    assert {user.ask(f"show {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")} == {"on"}
    assert user.ask("show max_connections") == "200"
    assert user.ask("show shared_preload_libraries") == "pg_stat_statements"
    assert (
        user.ask("select datlocprovider::text || datlocale from pg_database where datname = 'pgbroker'") == "bC.UTF-8"
    )


@pytest.mark.skipif(not as_root(), reason="only root's servers live outside their clones")
def test_as_root_the_server_runs_unprivileged_and_goes_when_its_clone_is_gone(new_clone: Clone, clone: Clone) -> None:
    user = new_clone.attach()
    assert Path(f"/proc/{new_clone.server}").stat().st_uid == pwd.getpwnam(UNPRIVILEGED_USER).pw_uid
    user.leave()
    wait_until(lambda: not new_clone.processes("keep"))
    place = new_clone.place.home
    shutil.move(new_clone.folder, new_clone.folder.with_name("moved away"))
    try:
        clone.attach()
        assert not place.exists()
        assert clone.place.home.exists()
    finally:
        shutil.move(new_clone.folder.with_name("moved away"), new_clone.folder)


def test_a_socket_folder_that_would_not_fit_into_an_address_moves_to_a_short_one() -> None:
    near, far = Place(Path("/srv/clone/.postgres")), Place(Path("/srv") / ("long" * 25))

    assert near.sockets == near.run
    assert len(str(far.sockets)) < 60
    assert far.sockets != Place(Path("/srv") / ("longer" * 25)).sockets


def test_a_socket_folder_that_somebody_else_laid_out_is_refused(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.symlink_to(tmp_path)

    with pytest.raises(EmbeddedServerError, match=f"{trap} belongs to somebody else"):
        make_private_folder(trap)


def test_stop_and_remove_say_what_they_did(new_clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    new_clone.command("stop")
    user = new_clone.attach()
    new_clone.command("stop")
    new_clone.command("stop")
    user.die()
    new_clone.command("remove")
    new_clone.command("remove")

    said = [line.removeprefix("The PostgreSQL of this clone: ") for line in capfd.readouterr().out.splitlines()]
    assert said == ["does not run.", "stopped.", "does not run.", "stopped, and its data deleted.", "has no data."]
