"""Measure the broker against its own floor, in a database of its own. For pgbroker_bench; may use the store."""
