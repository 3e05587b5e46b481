"""The training loop on the host: log, evaluate, save, stop and continue.

Everything that is random or ordered is a function of the step, and a checkpoint holds the exact
bits of all that training changes. So a run that was killed and continued ends with the weights of
an uninterrupted run, on one device to the bit (on a GPU: with `deterministic`).
"""

import contextlib
import dataclasses
import math
import signal
import threading
import time

import numpy as np

from data_prep.jobs import commands
from official_bert.common.json_files import fields_of

# A compiled call takes about this long: progress stays smooth, Ctrl-C is answered soon.
_SECONDS_PER_CALL = 1.0
_LARGEST_CALL = 1000


@dataclasses.dataclass(frozen=True)
class LoopEvents:
    """The steps, from the start of the run, at which things happen; 0 means never."""

    last_step: int
    log_every: int = 100
    eval_every: int = 0
    save_every: int = 0
    stops: tuple[int, ...] = ()  # steps at which a call has to end: phases, snapshots
    eval_at: tuple[int, ...] = ()
    steps_per_call: int = 0  # 0: about a second
    patience: int = 0  # stop after so many evaluations in a row without a new best; 0: never

    @classmethod
    def of(cls, config, last_step, **more):
        """Return the LoopEvents of a PretrainConfig or FinetuneConfig."""
        every = {name: getattr(config, name) for name in ("log_every", "eval_every", "save_every")}
        return cls(last_step, **every, **more)


@dataclasses.dataclass
class TrainingState:
    """The values of a checkpoint beside its arrays."""

    step: int = 0
    seconds: float = 0.0  # of training, evaluation and saving, over all processes of the run
    examples: int = 0
    tokens: int = 0
    evaluated_step: int = 0
    best_step: int = -1
    best_score: float = -math.inf
    best_metrics: dict = dataclasses.field(default_factory=dict)
    since_best: int = 0  # evaluations after the best one
    position: dict = dataclasses.field(default_factory=dict)


def train(
    trainer,
    batches,
    events,
    checkpoints,
    progress,
    state,
    *,
    write=True,
    evaluate=None,
    when_reached=(),
):
    """Train from `state.step` to `events.last_step`.

    Args:
      trainer: a Trainer whose arrays are those of `state`.
      batches: has `take(trainer, step, count)`, which takes up to `count` steps from `step` on and
        returns (metrics as dict of arrays [steps], examples, tokens, FLOPs), and `position(step)`,
        JSON values that say where in the data a step begins.
      events: LoopEvents.
      checkpoints: Checkpoints to save to.
      progress: Progress.
      state: TrainingState; changed in place.
      write: False in processes that write no files.
      evaluate: function of the step -> (metrics, score); the highest score is the best. Without
        metrics nothing was evaluated.
      when_reached: dict of step -> function to call once that many steps are taken.

    Raises:
      FloatingPointError: the loss or the gradient is no longer finite; names the step.
      KeyboardInterrupt: Ctrl-C, after saving. SystemExit(143): SIGTERM, after saving.
    """
    saved_step = state.step
    logged = _Means()
    per_call = 1
    started = time.perf_counter() - state.seconds

    def save():
        nonlocal saved_step
        if saved_step == state.step or not write:
            return
        state.seconds = time.perf_counter() - started
        state.position = batches.position(state.step)
        checkpoints.save(
            state.step, trainer.arrays(), dataclasses.asdict(state), best_step=state.best_step
        )
        saved_step = state.step

    def do_what_is_due():
        """Evaluate, save and stop as is due at the step just reached, or restored from a
        checkpoint."""
        due = state.step in events.eval_at or _due(state.step, events.eval_every)
        if evaluate and due and state.evaluated_step < state.step:
            with stop.interruptible():
                _evaluate(evaluate, state, progress)
        if state.step in when_reached and not stop.requested:
            when_reached[state.step]()
        is_best = state.best_step == state.step > 0
        if stop.requested or is_best or _due(state.step, events.save_every, events.last_step):
            save()
        if stop.requested:
            stop.leave(state.step, events.last_step, saved_step)

    with _Stop() as stop:
        do_what_is_due()
        while state.step < events.last_step and not _gave_up(events, state):
            count = min(per_call, _next_event(events, state.step) - state.step)
            before = time.perf_counter()
            metrics, examples, tokens, flops = batches.take(trainer, state.step, count)
            count = len(metrics["loss"])
            _check_finite(metrics, state.step, checkpoints)
            seconds = time.perf_counter() - before
            state.step += count
            state.examples += examples
            state.tokens += tokens
            logged.add(metrics)
            progress.advance(count, examples, tokens, flops, float(np.mean(metrics["loss"])))
            per_call = events.steps_per_call or _steps_in_a_second(count, seconds, per_call)
            if _due(state.step, events.log_every, events.last_step):
                values = {**logged.means(), "learning_rate": trainer.learning_rate(state.step)}
                progress.log(state.step, values)
                logged = _Means()
            do_what_is_due()
    state.seconds = time.perf_counter() - started
    return state


def restore(trainer, checkpoints, trunk=None):
    """Load the arrays of the newest intact checkpoint; return its TrainingState, a new one without
    a checkpoint.

    Args:
      trunk: Checkpoints of the run's trunk, used while the run has no checkpoint of its own.

    Raises:
      UserError: the checkpoint is of another model or version.
    """
    source, found = checkpoints, checkpoints.load_newest()
    if found is None and trunk:
        source, found = trunk, trunk.load(trunk.steps()[-1])
    if found is None:
        return TrainingState()
    arrays, values = found
    trainer.load_arrays(arrays)
    return TrainingState(**fields_of(TrainingState, values, f"{source.folder}: state"))


def _evaluate(evaluate, state, progress):
    metrics, score = evaluate(state.step)
    state.evaluated_step = state.step
    if not metrics:  # a phase without held-out records
        return
    progress.log(state.step, {f"dev/{name}": value for name, value in metrics.items()})
    if score > state.best_score:
        state.since_best = 0
        state.best_score, state.best_step, state.best_metrics = score, state.step, metrics
    else:  # a score that is not a number among them
        state.since_best += 1
    summary = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
    progress.say(f"step {state.step}: {summary}")


def _gave_up(events, state):
    return 0 < events.patience <= state.since_best


def _next_event(events, step):
    """Return the first step after `step` at which something is due."""
    periods = filter(None, (events.log_every, events.eval_every, events.save_every))
    next_ones = (step - step % every + every for every in periods)
    named = (s for s in (*events.stops, *events.eval_at) if s > step)
    return min((events.last_step, *next_ones, *named))


def _due(step, every, last_step=-1):
    return step > 0 and (bool(every) and step % every == 0 or step == last_step)


def _steps_in_a_second(count, seconds, before):
    wanted = int(count * _SECONDS_PER_CALL / max(seconds, 1e-6))
    # At most doubled: the first calls also compile, or find the caches warm.
    return max(1, min(wanted, 2 * before, _LARGEST_CALL))


def _check_finite(metrics, step, checkpoints):
    finite = np.isfinite(metrics["loss"]) & np.isfinite(metrics["gradient_norm"])
    if finite.all():
        return
    first = int(np.argmin(finite))
    steps = checkpoints.steps()
    last_good = f"the checkpoint of step {steps[-1]} is kept" if steps else "no checkpoint yet"
    raise FloatingPointError(
        f"step {step + first + 1}: the loss is {metrics['loss'][first]}, the norm of the gradient "
        f"{metrics['gradient_norm'][first]}; {last_good}. Try a lower learning rate or a longer "
        "warm-up"
    )


class _Means:
    """Means of training metrics between two log points.

    It keeps the last value of metrics that are computed only at the last step of a call."""

    def __init__(self):
        self._sums, self._last, self._count = {}, {}, 0

    def add(self, metrics):
        for name, values in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(np.sum(values, dtype=np.float64))
            self._last[name] = float(values[-1])
        self._count += len(metrics["loss"])

    def means(self):
        return {
            name: self._last[name] if name.endswith("accuracy") else total / self._count
            for name, total in self._sums.items()
        }


class _Stop:
    """Turns SIGINT and SIGTERM into a request that the loop answers between two calls."""

    def __init__(self):
        self.requested = None
        self._raise_at_once = False
        self._before = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def interruptible(self):
        """Let a request leave the block at once; the loop then saves."""
        self._raise_at_once = True
        try:
            if not self.requested:
                yield
        except _LeaveBlock:
            pass
        finally:
            self._raise_at_once = False

    def leave(self, step, last_step, saved_step):
        """End the process with one line."""
        kept = f"saved at step {saved_step}" if saved_step == step else "not saved"
        line = (
            f"stopped after step {step} of {last_step}, {kept}; "
            "the same command continues from there"
        )
        if self.requested == signal.SIGINT:
            raise KeyboardInterrupt(line)
        commands.say(line)
        raise SystemExit(128 + signal.SIGTERM)

    def _handle(self, number, _frame):
        if self.requested:  # asked twice: at once
            raise KeyboardInterrupt("stopped at once, without saving")
        self.requested = number
        if self._raise_at_once:
            self._raise_at_once = False
            raise _LeaveBlock


class _LeaveBlock(BaseException):
    pass
