"""An app with handlers for all three executors, known to workers with ``tests.scenarios.executor_settings`` alone."""
