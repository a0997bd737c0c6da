"""The base of the commands that change something: who asks and why, a trial, a question, and what came of it."""

import os
import pwd
import sys
from argparse import Namespace
from collections.abc import Callable

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from django_pgbroker.domain.options import LONGEST_TEXT
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import find_verb
from django_pgbroker.management.broker_command import BrokerCommand
from django_pgbroker.management.columns import make_printable
from django_pgbroker.management.exit_codes import ExitCode
from django_pgbroker.management.listing import write_json, write_rows
from django_pgbroker.management.report_words import Telling
from django_pgbroker.operations.actors import Person
from django_pgbroker.operations.job_changes import Asking, Matches


class VerbCommand(BrokerCommand):
    """A command some of whose subcommands are verbs."""

    def add_verb_options(self, parser: CommandParser) -> None:
        """Declare what every verb takes."""
        group = parser.add_argument_group("who, why and how")
        group.add_argument(
            "--as",
            dest="username",
            metavar="USER",
            help="act as this user of Django, whose permissions are checked (default: the system, which is trusted)",
        )
        group.add_argument("--reason", metavar="TEXT", help="why, for the audit; up to 200 characters")
        group.add_argument("--dry-run", action="store_true", help="tell what would happen, and change nothing")
        group.add_argument("--yes", action="store_true", help="do not ask before more than one object is changed")
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
        trial: Callable[[], VerbReport] | None = None,
        matches: Callable[[], Matches] | None = None,
    ) -> None:
        """Try, ask and do a verb, as the options say, and print what came of it.

        Args:
            options: of the command line.
            act: does it.
            is_many: whether more than one object may be meant, so that a person confirms the number.
            target: name of the object, where the report has no ids.
            noun: what is counted, where it is not the verb's subject.
            trial: does it within a transaction that is rolled back; by default ``act``.
            matches: counts, where the trial says that a job of the broker would do it.

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
                report = (trial or act)()
                # its announcements are undone too
                transaction.set_rollback(True, using=options.database)
            counted = matches() if matches and report.background_job_id else None
            telling = Telling(report, target, noun, is_trial=True, matches=counted)
            if options.dry_run:
                self._print(telling, as_json=options.json)
                return
            if telling.is_something:
                self._confirm(telling)
        self._print(Telling(act(), target, noun), as_json=options.json)

    def _confirm(self, telling: Telling) -> None:
        """Ask a person on the terminal; the question goes past ``stdout``, which may be a file."""
        label = find_verb(telling.report.verb).label
        self.stderr.write(f"{telling.sentence} {label}? [y/N] ", lambda text: text, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise CommandError("not confirmed: nothing was changed", returncode=ExitCode.NOT_PERMITTED)

    def _print(self, telling: Telling, *, as_json: bool) -> None:
        if as_json:
            write_json(self.stdout, telling.as_json())
        elif not self.stdout.isatty():
            write_rows(self.stdout, ("object", "outcome", "why"), telling.rows)
        elif telling.code is ExitCode.DONE:
            self.stdout.write(telling.sentence)
        elif telling.report.refusals:
            refused = [(str(refusal.job_id), refusal.why) for refusal in telling.report.refusals]
            write_rows(self.stdout, ("refused", "because"), refused, is_whole=True)
        if telling.code is not ExitCode.DONE:
            raise CommandError(telling.sentence, returncode=telling.code)


def _find_user(username: str) -> Person:
    users = get_user_model()
    if not username.isprintable():
        raise CommandError("--as: the name has characters that no user's has", returncode=ExitCode.ERROR)
    try:
        found: Person = users._default_manager.get(**{users.USERNAME_FIELD: username})
    except users.DoesNotExist:
        raise CommandError(
            f"--as: there is no user {username!r}. Leave --as out to act as the system", returncode=ExitCode.ERROR
        ) from None
    return found


def _name_system() -> str:
    """The account of this process, never what an environment variable says."""
    try:
        account = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        account = f"uid {os.getuid()}"
    return f"system ({make_printable(account)})"[:LONGEST_TEXT]
