"""Enqueues jobs through whatever happens to the server, and prints the ids that were confirmed."""

import time

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, connection

from tests.drills.jobs import work


class Command(BaseCommand):
    """``manage.py drill_produce``."""

    help = "Enqueue jobs one by one; after an error connect again and go on."

    def add_arguments(self, parser):
        parser.add_argument("--count", type=int, required=True)
        parser.add_argument("--milliseconds", type=int, default=0, help="how long each job works")
        parser.add_argument("--seconds", type=float, default=60, help="give up after this long")

    def handle(self, *, count, milliseconds, seconds, **options):
        until = time.monotonic() + seconds
        left = count
        while left and time.monotonic() < until:
            try:
                handle = work.enqueue(milliseconds=milliseconds)
            except (DatabaseError, InterfaceError):
                connection.close()
                time.sleep(0.02)
                continue
            self.stdout.write(f"job {handle.id}")
            left -= 1
        self.stdout.write("produced everything" if not left else f"{left} jobs were not produced")
