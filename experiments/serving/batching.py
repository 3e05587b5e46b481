"""Requests that wait are answered together: 32 short texts at once cost a third of 32 in turn.

Nothing waits for company. While one batch is computed others arrive; the first of them that gets a
place takes all that fit and computes for them, too.
"""

import threading

import numpy as np


class Batcher:
    """Runs a model, joining requests of several threads.

    Args:
      run: function (signature name, {input: array}) -> {output: array or list}, a row an example.
      signatures: {name: concrete function} of the model.
      parallel: batches that are computed at the same time.
      most_rows: rows of a joint batch.
    """

    def __init__(self, run, signatures: dict, parallel: int, most_rows: int):
        self._run = run
        self._joinable = {name for name, each in signatures.items() if can_be_joined(each)}
        self._places = threading.Semaphore(parallel)
        self._most_rows = most_rows
        self._lock = threading.Lock()
        self._waiting: list[_Job] = []

    def __call__(self, signature: str, inputs: dict[str, np.ndarray]) -> dict:
        """The model's outputs for `inputs`; raises what `run` raises."""
        if signature not in self._joinable:
            with self._places:
                return self._run(signature, inputs)
        job = _Job(signature, inputs)
        with self._lock:
            self._waiting.append(job)
        with self._places:
            self._compute(self._take(job))
        job.done.wait()  # a batch of another thread may have taken it
        if job.error is not None:
            raise job.error
        return job.outputs

    def _take(self, job) -> list["_Job"]:
        """`job` and others for the same signature, the oldest first; nothing if it was taken."""
        with self._lock:
            if job not in self._waiting:
                return []
            taken, rows = [job], job.rows
            for other in self._waiting:
                if other is job or other.signature != job.signature:
                    continue
                if rows + other.rows > self._most_rows:
                    break
                taken.append(other)
                rows += other.rows
            self._waiting = [other for other in self._waiting if other not in taken]
        return taken

    def _compute(self, jobs) -> None:
        try:
            if len(jobs) > 1:
                self._compute_together(jobs)
        except Exception:
            pass  # one request spoils the others: each is computed alone below
        for job in jobs:
            try:
                if job.outputs is None:
                    job.outputs = self._run(job.signature, job.inputs)
            except Exception as error:  # belongs to the thread of that request
                job.error = error
            finally:
                job.done.set()

    def _compute_together(self, jobs) -> None:
        names = jobs[0].inputs
        joint = {name: np.concatenate([job.inputs[name] for job in jobs]) for name in names}
        outputs = self._run(jobs[0].signature, joint)
        begin = 0
        for job in jobs:
            end = begin + job.rows
            job.outputs = {name: values[begin:end] for name, values in outputs.items()}
            begin = end


def can_be_joined(function) -> bool:
    """Whether rows do not depend on their neighbours: no dimension but the first varies.

    With padding to the longest row of a batch, a request's answer would change its shape with the
    requests that happen to be beside it.
    """
    inputs = function.structured_input_signature[1].values()
    outputs = function.structured_outputs.values()
    return all(spec.shape.rank == 1 for spec in inputs) and all(
        spec.shape.rank >= 1 and all(size is not None for size in spec.shape[1:])
        for spec in outputs
    )


class _Job:
    """A request on its way through; compared by identity."""

    def __init__(self, signature, inputs):
        self.signature = signature
        self.inputs = inputs
        self.rows = len(next(iter(inputs.values())))
        self.outputs: dict | None = None
        self.error: Exception | None = None
        self.done = threading.Event()
