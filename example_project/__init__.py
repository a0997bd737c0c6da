"""A small Django project that runs the broker: the demo, the development server and the tests use it."""
