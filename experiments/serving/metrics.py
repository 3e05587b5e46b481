"""Counters of a server, in the text format that Prometheus reads."""

import collections
import threading

# Upper ends of the times that are counted together, in seconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Requests by route and status, and how long they took. Threads may share it."""

    def __init__(self):
        self._lock = threading.Lock()
        self._requests = collections.Counter()
        self._within = collections.Counter()
        self._seconds = collections.Counter()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Counts an answered request."""
        with self._lock:
            self._requests[route, status] += 1
            self._seconds[route] += seconds
            for bound in _BUCKETS:
                self._within[route, bound] += seconds <= bound

    def text(self, queue: int, queue_limit: int, stopping: bool) -> str:
        """All counts, and how many requests are being answered or wait at this moment."""
        with self._lock:
            requests, within = dict(self._requests), dict(self._within)
            seconds = dict(self._seconds)
        lines = [*_head("bert_requests_total", "counter", "Requests answered.")]
        for (route, status), count in sorted(requests.items()):
            lines.append(f'bert_requests_total{{route="{route}",status="{status}"}} {count}')
        lines += _head("bert_errors_total", "counter", "Requests that failed in the server.")
        errors = sum(count for (_, status), count in requests.items() if status >= 500)
        lines.append(f"bert_errors_total {errors}")
        lines += _head("bert_request_seconds", "histogram", "Time from a request to its answer.")
        for route in sorted(seconds):
            total = sum(count for (other, _), count in requests.items() if other == route)
            for bound in _BUCKETS:
                label = f'route="{route}",le="{bound}"'
                lines.append(f"bert_request_seconds_bucket{{{label}}} {within[route, bound]}")
            lines.append(f'bert_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
            lines.append(f'bert_request_seconds_sum{{route="{route}"}} {seconds[route]:.6f}')
            lines.append(f'bert_request_seconds_count{{route="{route}"}} {total}')
        for name, help_text, value in (
            ("bert_queue", "Requests that are answered or wait.", queue),
            ("bert_queue_limit", "Requests that may; one more is refused.", queue_limit),
            ("bert_stopping", "1 while the server stops.", int(stopping)),
        ):
            lines += [*_head(name, "gauge", help_text), f"{name} {value}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, help_text: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
