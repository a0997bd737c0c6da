"""The text of the statements belongs to the code that was loaded with it."""

import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location

from django_pgbroker.store import statement as original


def test_a_process_under_which_the_release_is_replaced_keeps_the_statements_that_it_began_with(tmp_path, monkeypatch):
    source = original.__file__
    shutil.copy(source, tmp_path)
    shutil.copytree(source.replace("statement.py", "sql"), tmp_path / "sql")
    spec = spec_from_file_location("statement_before", tmp_path / "statement.py")
    before = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "statement_before", before)
    spec.loader.exec_module(before)

    for path in (tmp_path / "sql").glob("*.sql"):
        path.write_text("select 'of the next release'")

    assert before.statement_names() == original.statement_names()
    for name in original.statement_names():
        assert before.statement(name).text == original.statement(name).text
