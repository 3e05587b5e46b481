"""Load on the local server: many clients at once, right and wrong requests mixed.

    BERT_DATA_DIR=... python benchmarks/serving_load.py --model=exported/sst2 --figure=load.svg

Starts `experiments.serve`, sends requests from 16 clients until both the number and the seconds are
reached, and prints rate, latency, errors and the server's memory as it went. Ends with 1 if a right
request failed, a wrong one was not refused, or memory grew by more than a tenth after the first
quarter.
"""

import argparse
import collections
import http.client
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

# One in a hundred requests is one of these; the second element is the status it must get.
_WRONG = (
    (b'{"instances": [', 400),
    (b'{"instances": [3]}', 400),
    (b'{"instances": ["\xff"]}', 400),
    (b'{"instances": ["' + b"a" * 10_000_000 + b'"]}', 413),
    (json.dumps({"instances": ["a"] * 100_000}).encode(), 413),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="an exported classifier")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--data_dir", default=os.environ.get("BERT_DATA_DIR", ""))
    parser.add_argument("--figure", default="", help="image file: memory and answers over time")
    options = parser.parse_args()
    path = Path(options.data_dir) / "glue_data" / "SST-2" / "dev.tsv"
    texts = [line.split("\t")[0] for line in path.read_text("utf-8").splitlines()[1:]]

    command = [sys.executable, "-m", "experiments.serve", f"--model={options.model}", "--port=0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    line = server.stdout.readline()
    name, port = re.search(r"serving (\S+) at http://[^:]+:(\d+)/", line).groups()
    load = Load(f"/v1/models/{name}:predict", int(port), texts)
    memory = load.run(options.clients, options.requests, options.seconds, server.pid)
    server.terminate()
    stopped = server.wait(30) == 0

    seconds = sorted(load.seconds)
    quarter, last = memory[len(memory) // 4], memory[-1]
    print(
        f"{sum(load.statuses.values())} requests of {options.clients} clients in "
        f"{load.elapsed:.0f} s: {len(seconds) / load.elapsed:.0f} answers/s, p50 "
        f"{1e3 * statistics.median(seconds):.0f} ms, p99 "
        f"{1e3 * seconds[int(0.99 * len(seconds))]:.0f} ms; statuses {dict(load.statuses)}; "
        f"{len(load.surprises)} surprises {load.surprises[:3]}; memory {memory[0]:.0f} MB at the "
        f"start, {quarter:.0f} after a quarter, {last:.0f} at the end; "
        f"{'stopped' if stopped else 'did not stop'} when told"
    )
    if options.figure:
        draw(options.figure, memory, load)
    return int(bool(load.surprises) or last > 1.1 * quarter or not stopped)


def draw(path, memory, load):
    """The server's memory and the answers of each second."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 4), sharex=True)
    above.plot(range(1, len(memory) + 1), memory)
    above.set_ylabel("memory of the\nserver, MB")
    above.set_ylim(0, 1.3 * max(memory))
    per_second = collections.Counter(int(when) for when in load.answered)
    below.plot([per_second[second] for second in range(int(load.elapsed))])
    below.set_ylabel("answers\nin a second")
    below.set_ylim(0)
    below.set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(path)


class Load:
    """Sends requests from threads and keeps what came back."""

    def __init__(self, address, port, texts):
        self._address, self._port, self._texts = address, port, texts
        self._numbers = itertools.count()
        self.seconds, self.statuses, self.surprises = [], collections.Counter(), []
        self.answered: list[float] = []  # seconds from the start
        self.elapsed = self._start = 0.0

    def run(self, clients, requests, seconds, server) -> list[float]:
        """Returns the server's memory in MB, once a second."""
        done = threading.Event()
        self._start = start = time.monotonic()

        def wanted():
            return next(self._numbers), time.monotonic() - start

        def client():
            while (drawn := wanted())[0] < requests or drawn[1] < seconds:
                self._ask(drawn[0])

        threads = [threading.Thread(target=client) for _ in range(clients)]
        memory, process = [], psutil.Process(server)

        def watch():
            while not done.wait(1):
                memory.append(process.memory_info().rss / 1e6)

        watcher = threading.Thread(target=watch)
        for thread in (watcher, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        self.elapsed = time.monotonic() - start
        done.set()
        watcher.join()
        return memory

    def _ask(self, number):
        if number % 100 == 99:
            body, expected = _WRONG[number // 100 % len(_WRONG)]
        else:
            text = self._texts[number % len(self._texts)]
            body, expected = json.dumps({"instances": [text]}).encode(), 200
        start = time.perf_counter()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            connection.request("POST", self._address, body)
            reply = connection.getresponse()
            content = json.loads(reply.read())
            connection.close()
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.surprises.append(f"{type(error).__name__}: {error}")
            return
        self.statuses[reply.status] += 1
        if reply.status == 200:
            self.seconds.append(time.perf_counter() - start)
            self.answered.append(time.monotonic() - self._start)
        right = "predictions" in content if expected == 200 else "error" in content
        if reply.status != expected or not right:
            self.surprises.append(f"{reply.status} instead of {expected}: {str(content)[:100]}")


if __name__ == "__main__":
    sys.exit(main())
