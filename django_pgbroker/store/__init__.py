"""The statements of the broker: one ``.sql`` file and one Python function of the same name each."""
