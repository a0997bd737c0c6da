"""The base of the commands that change something: who asks and why, a trial, a question, and what came of it."""

import os
import pwd
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from django_pgbroker.domain.options import LONGEST_TEXT
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import find_verb
from django_pgbroker.management.broker_command import BrokerCommand
from django_pgbroker.management.columns import make_printable
from django_pgbroker.management.exit_codes import ExitCode
from django_pgbroker.management.listing import write_json, write_rows
from django_pgbroker.operations.job_changes import Asking

#: So many ids stand in a sentence.
_IDS_IN_WORDS = 10


class VerbCommand(BrokerCommand):
    """A command some of whose subcommands are verbs."""

    def add_verb_options(self, parser: CommandParser) -> None:
        """Declare what every verb takes."""
        parser.add_argument(
            "--as",
            dest="username",
            metavar="USER",
            help="act as this user of Django, whose permissions are checked (default: the system, which is trusted)",
        )
        parser.add_argument("--reason", metavar="TEXT", help="why, for the audit; up to 200 characters")
        parser.add_argument("--dry-run", action="store_true", help="tell what would happen, and change nothing")
        parser.add_argument("--yes", action="store_true", help="do not ask before more than one object is changed")
        self.add_read_options(parser)

    def read_asking(self, options: Namespace) -> Asking:
        """Who asks, from where, why and on which database: the keyword arguments of every verb.

        Raises:
            CommandError: there is no such user.
        """
        actor = _name_system() if options.username is None else _find_user(options.username)
        return Asking(actor=actor, reason=options.reason, source="command", using=options.database)

    def carry_out(
        self,
        options: Namespace,
        act: Callable[[], VerbReport],
        *,
        is_many: bool,
        target: str | None = None,
        noun: str | None = None,
    ) -> None:
        """Try, ask and do a verb, as the options say, and print what came of it.

        Args:
            options: of the command line.
            act: does it; called within a transaction that is rolled back first, where a trial is needed.
            is_many: whether more than one object may be meant, so that a person confirms the number.
            target: name of the object, where the report has no ids.
            noun: what is counted, where it is not the verb's subject.

        Raises:
            CommandError: nothing was changed, some were refused, or nobody confirmed.
        """
        asks = is_many and not options.yes and not options.dry_run
        if asks and not sys.stdin.isatty():
            raise CommandError(
                "this may change more than one object, and nobody can be asked: give --yes, or --dry-run to see what "
                "would happen",
                returncode=ExitCode.NOT_PERMITTED,
            )
        if asks or options.dry_run:
            with transaction.atomic(using=options.database):
                report = act()
                # what a trial did is undone, its announcements too
                transaction.set_rollback(True, using=options.database)
            if options.dry_run:
                self._print(report, options, target, noun)
                return
            if report.changed or report.background_job_id:
                self._confirm(report, noun)
        self._print(act(), options, target, noun)

    def _confirm(self, report: VerbReport, noun: str | None) -> None:
        """Ask a person on the terminal; the question goes past ``stdout``, which may be a file."""
        refused = f" ({report.refused:,} more would be refused)" if report.refused else ""
        self.stderr.write(
            f"This is for {_count(report, noun)}{refused}. {find_verb(report.verb).label}? [y/N] ", ending=""
        )
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise CommandError("not confirmed: nothing was changed", returncode=ExitCode.NOT_PERMITTED)

    def _print(self, report: VerbReport, options: Namespace, target: str | None, noun: str | None) -> None:
        sentence = _describe(report, is_trial=options.dry_run, target=target, noun=noun)
        if options.json:
            write_json(self.stdout, _as_json(report, is_trial=options.dry_run))
        elif self.stdout.isatty():
            self.stdout.write(sentence)
            write_rows(self.stdout, ("id", "refused because"), [(str(r.job_id), r.why) for r in report.refusals])
        else:
            write_rows(self.stdout, ("object", "outcome", "why"), _outcome_rows(report, target, options.dry_run))
        if not report.changed and not report.background_job_id:
            raise CommandError(sentence, returncode=ExitCode.NOTHING)
        if report.refused:
            raise CommandError(sentence, returncode=ExitCode.IN_PART)


def _describe(report: VerbReport, *, is_trial: bool, target: str | None, noun: str | None) -> str:
    done = find_verb(report.verb).done
    if report.background_job_id and is_trial:
        return f"{_count(report, noun).capitalize()} would be {done} by a job of the broker."
    if report.background_job_id:
        job_id = report.background_job_id
        return (
            f"Job {job_id} of the broker does it. Watch it: manage.py pgbroker_jobs show {job_id}. "
            f"Stop it: manage.py pgbroker_jobs cancel {job_id}."
        )
    if not report.changed:
        return f"Nothing was {done}" + (f": {report.refused:,} refused." if report.refused else ": nothing matched.")
    named = ", ".join(map(str, report.ids[:_IDS_IN_WORDS])) + (", …" if report.changed > _IDS_IN_WORDS else "")
    named = named or make_printable(target or "")
    sentence = f"{_count(report, noun)} {'would be ' if is_trial else ''}{done}{f': {named}' if named else ''}."
    return sentence + (f" {report.refused:,} refused." if report.refused else "")


def _count(report: VerbReport, noun: str | None) -> str:
    each = noun or find_verb(report.verb).subject
    if report.background_job_id and not report.changed:
        return f"more {each}s than are done at once"
    return f"{report.changed:,} {each}{'' if report.changed == 1 else 's'}"


def _as_json(report: VerbReport, *, is_trial: bool) -> dict[str, Any]:
    return {
        "verb": report.verb,
        "is_dry_run": is_trial,
        "changed": report.changed,
        "ids": list(report.ids),
        "refused": report.refused,
        "refusals": [{"id": refusal.job_id, "why": refusal.why} for refusal in report.refusals],
        "background_job_id": None if is_trial else report.background_job_id,
        "needs_background": report.background_job_id is not None,
    }


def _outcome_rows(report: VerbReport, target: str | None, is_trial: bool) -> list[tuple[str, str, str]]:
    changed = "would change" if is_trial else "changed"
    if report.background_job_id:
        rows = [("" if is_trial else str(report.background_job_id), "background", "a job of the broker does it")]
    elif report.ids or not report.changed:
        rows = [(str(each), changed, "") for each in report.ids]
    else:
        rows = [(target or "", changed, "")]
    return rows + [(str(refusal.job_id), "refused", refusal.why) for refusal in report.refusals]


def _find_user(username: str) -> AbstractBaseUser:
    users = get_user_model()
    try:
        return users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist:
        raise CommandError(
            f"--as: there is no user {username!r}. Leave --as out to act as the system", returncode=ExitCode.ERROR
        ) from None


def _name_system() -> str:
    """The account of this process, never what an environment variable says."""
    try:
        account = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        account = f"uid {os.getuid()}"
    return f"system ({make_printable(account)})"[:LONGEST_TEXT]
