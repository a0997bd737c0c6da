"""The reference of the commands names all there are, their options, their exit codes and the keys of their JSON."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.utils import timezone

from django_pgbroker.management.exit_codes import BROKEN_PIPE, INTERRUPTED, ExitCode
from tests import factories
from tests.management.commands import audit, run

PAGE = (Path(__file__).parents[2] / "docs/reference/commands.md").read_text(encoding="utf-8")
OURS = sorted(name for name in get_commands() if name.startswith("pgbroker_"))

#: Those that all commands of Django have, and those that the page tells of once for all.
COMMON = {
    *(option for action in BaseCommand().create_parser("", "")._actions for option in action.option_strings),
    "--database",
    "--json",
    *("--as", "--reason", "--dry-run", "--yes", "--after", "--limit"),
}


def parsers_of(name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    parser = load_command_class("django_pgbroker", name).create_parser("manage.py", name)
    yield "", parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def section_of(name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/commands.md has no section {name}"
    return found[1]


@pytest.mark.parametrize("name", OURS)
def test_every_command_has_a_section_with_its_subcommands_and_options(name):
    section = section_of(name) + (section_of("pgbroker_jobs") if name == "pgbroker_redrive" else "")
    for subcommand, parser in parsers_of(name):
        assert f"`{subcommand}" in section or not subcommand
        if name == "pgbroker_bench":
            continue
        for action in parser._actions:
            if action.help != argparse.SUPPRESS:
                named = [option for option in action.option_strings if option in COMMON or option in section]
                assert named or not action.option_strings, f"{name} {subcommand}: {action.option_strings}"


def test_the_options_of_all_operators_are_told_once():
    for option in ("--as", "--reason", "--dry-run", "--yes", "--json", "--database", "--after", "--limit"):
        assert f"`{option}" in PAGE


def test_every_exit_status_is_told():
    for status in ExitCode:
        assert re.search(rf"^\| {status.value} \|", PAGE, re.MULTILINE)
    assert f"| {INTERRUPTED}, {BROKEN_PIPE} |" in PAGE


@pytest.mark.parametrize("name", ["pgbroker_jobs", "pgbroker_redrive", "pgbroker_queues", "pgbroker_workers"])
def test_every_help_has_examples_and_the_exit_codes(name):
    for subcommand, parser in parsers_of(name):
        text = parser.format_help()
        assert f"manage.py {name} {subcommand}".strip() in text.split("examples:")[1]
        assert "5  nothing was changed" in text


@pytest.mark.django_db
def test_every_key_of_the_json_is_told():
    live, dead = factories.JobFactory(running=True), factories.ArchivedJobFactory(dead=True)
    factories.ExecutionFactory(failed=True, job_id=dead.pk)
    factories.JobStepFactory(job_id=dead.pk)
    audit(target={"jobs": [dead.pk]})
    factories.WorkerFactory(heartbeat_at=timezone.now())
    runs = [
        ("pgbroker_jobs", ["list"]),
        ("pgbroker_jobs", ["show", str(dead.pk)]),
        ("pgbroker_jobs", ["show", str(live.pk)]),
        ("pgbroker_audit", []),
        ("pgbroker_roles", ["--dry-run"]),
        ("pgbroker_status", []),
        ("pgbroker_queues", ["list"]),
        ("pgbroker_queues", ["set", live.queue.name, "--ageing", "7"]),
        ("pgbroker_workers", ["list"]),
    ]
    for name, words in runs:
        for key in keys_of(run(name, *words, "--json").json):
            assert f"`{key}`" in section_of(name) + section_of(SHARED.get(name, name)), (name, key)
    for key in keys_of(run("pgbroker_jobs", "cancel", str(live.pk), str(dead.pk), "--yes", "--json").json):
        assert f"`{key}`" in PAGE, key


#: Whose keys a command prints too.
SHARED = {
    "pgbroker_jobs": "pgbroker_audit",
    "pgbroker_queues": "pgbroker_status",
    "pgbroker_workers": "pgbroker_status",
}

#: What is stored under these is not the commands' own.
STORED = {"arguments", "headers", "result", "target", "before", "after"}


def keys_of(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        return set(value).union(*(keys_of(value[key]) for key in value if key not in STORED))
    return set()
