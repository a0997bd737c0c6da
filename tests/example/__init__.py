"""Tests of the example app and its demo."""
