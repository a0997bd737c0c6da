"""``manage.py ingest_folder FOLDER``: enqueue the analysis of every Python file below a folder."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.documents.ingest import UnusableFolder, find_sources, ingest
from example_project.documents.management.numbers import at_least_one
from example_project.documents.models import Batch


class Command(BaseCommand):
    help = "Read a folder of Python files into documents and enqueue a job for each, a hundred in one transaction."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--limit", type=at_least_one, help="take this many files at most")

    def handle(self, *args: Any, folder: Path, limit: int | None, **options: Any) -> None:
        try:
            paths = find_sources(folder, limit)
        except UnusableFolder as error:
            raise CommandError(str(error)) from error
        batch = Batch.objects.create(folder=str(folder))
        jobs = sum(len(job_ids) for job_ids in ingest(batch, paths))
        self.stdout.write(f"{batch}: {len(paths)} files, {jobs} jobs enqueued")
