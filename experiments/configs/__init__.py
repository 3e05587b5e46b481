"""One Python file an experiment: `get_config(scale)` returns its dataclass."""
