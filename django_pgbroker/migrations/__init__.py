"""SQL-first migrations: reviewed DDL in ``sql/``, and a state that only describes it."""
