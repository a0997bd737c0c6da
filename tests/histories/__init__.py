"""Random histories: hypothesis drives the statements of the broker beside a plain model, and both must always agree."""
