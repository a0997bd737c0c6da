"""Tests of what operators do to jobs."""
