"""Read one source file. Used by the job, and by the plain loop that the demo compares the jobs with."""

import hashlib
import io
import tokenize
from pathlib import Path
from typing import NamedTuple


class Analysis(NamedTuple):
    """What a source file holds."""

    encoding: str
    line_count: int
    token_count: int
    sha256: str


def analyse_file(path: Path) -> Analysis:
    """Detect the declared encoding of a Python source, count its lines and tokens, and hash it.

    Raises:
        SyntaxError: the encoding is unknown or wrong, or the text is no Python.
        tokenize.TokenError: the text ends inside a string or a bracket.
        UnicodeDecodeError: the bytes do not fit the encoding.
        OSError: the file cannot be read.
    """
    content = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return Analysis(
        encoding=encoding,
        line_count=sum(1 for _ in io.TextIOWrapper(io.BytesIO(content), encoding)),
        token_count=sum(1 for _ in tokenize.tokenize(io.BytesIO(content).readline)),
        sha256=hashlib.sha256(content).hexdigest(),
    )
