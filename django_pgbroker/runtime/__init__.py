"""What every long-running process shares: connections, signals, waiting, notifications."""
