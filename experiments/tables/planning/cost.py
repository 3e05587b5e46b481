"""The cost of every cell of a table before it runs: FLOPs, seconds and bytes."""

import dataclasses
from collections.abc import Callable

from experiments.tables.planning.plan import TablePlan
from experiments.tables.planning.step_rate import measured_rate
from experiments.tables.planning.steps import Steps, seconds, total_flops, usual_rate


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The cost of one cell.

    Attributes:
      flops: of its model.
      beside_flops: of all that works beside the model, such as a teacher.
      seconds: of one worker, for both kinds of FLOPs.
      bytes: that stay on disk.
    """

    flops: float
    beside_flops: float
    seconds: float
    bytes: float


def estimate(plan: TablePlan, rate_of: Callable[[Steps], float] = usual_rate):
    """Return {cell: its Estimate}.

    Args:
      rate_of: gives the FLOPs a second of some steps, as `usual_rate` or `measured`.
    """
    found = {}
    for cell in plan.cells:
        steps = plan.steps.get(cell.name, ())
        time = seconds(steps, rate_of) if cell.name in plan.steps else cell.cost
        beside = sum(one.beside_flops for one in steps)
        found[cell.name] = Estimate(total_flops(steps), beside, time, cell.bytes)
    return found


def measured(say: Callable) -> Callable[[Steps], float]:
    """Return a function for `estimate` that times one step of every shape on this machine.

    Args:
      say: takes a line before each timing.
    """

    def rate_of(steps):
        if steps.rate:
            return steps.rate
        return measured_rate(steps.bert, steps.rows, steps.length, steps.precision, say)

    return rate_of
