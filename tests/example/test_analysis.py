"""Reading one source file."""

import hashlib
from pathlib import Path

import pytest

from example_project.documents.analysis import analyse_file
from example_project.documents.ingest import broken_sources


@pytest.mark.parametrize(
    ("name", "encoding", "lines"),
    [
        ("plain.py", "utf-8", 1),
        ("empty.py", "utf-8", 0),
        ("marked.py", "utf-8-sig", 1),
        ("western.py", "iso-8859-1", 2),
        ("cyrillic.py", "koi8-r", 2),
        ("windows.py", "utf-8", 2),
        ("unended.py", "utf-8", 1),
        ("package/module.py", "utf-8", 2),
    ],
)
def test_the_declared_encoding_is_found_and_lines_are_counted(
    folder: Path, name: str, encoding: str, lines: int
) -> None:
    analysis = analyse_file(folder / name)

    assert (analysis.encoding, analysis.line_count) == (encoding, lines)


def test_tokens_are_counted_and_the_bytes_hashed_as_they_are(folder: Path) -> None:
    analysis = analyse_file(folder / "plain.py")

    # the encoding, the name, the sign, the number, the end of the line, the end of the file
    assert analysis.token_count == 6
    assert analysis.sha256 == hashlib.sha256(b"answer = 42\n").hexdigest()


def test_five_broken_sources_are_shipped() -> None:
    assert len(broken_sources()) == 5


@pytest.mark.parametrize("path", broken_sources(), ids=lambda path: path.name)
def test_every_shipped_broken_source_is_refused(path: Path) -> None:
    with pytest.raises(Exception) as refusal:  # noqa: PT011 (its kind depends on the Python that runs this)
        analyse_file(path)

    assert type(refusal.value).__name__ in {"SyntaxError", "IndentationError", "TokenError", "UnicodeDecodeError"}
