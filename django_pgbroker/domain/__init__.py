"""The rules of the broker in pure Python: states, records, verdicts, payloads, back-off. No database, no Django."""
