"""Cheap stand-ins for real cells: what the grid's tests run in worker processes."""

import os
import signal
import time
from pathlib import Path

from official_bert.common.errors import UserError


def run_cell(kind: str, config: dict, folder: Path, lock) -> dict:
    """Count its calls in `folder/calls`, then do what `config` asks for."""
    with open(folder / "calls", "a") as file:
        file.write("x")
    if "once" in config and not Path(config["once"]).exists():
        Path(config["once"]).write_text("seen")
        os.kill(os.getpid(), signal.SIGKILL)
    if config.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if config.get("exit"):
        os._exit(config["exit"])
    if config.get("diverge"):
        raise UserError("the loss became NaN at step 7")
    if "saves" in config:

        def save(*_):
            Path(config["saves"]).write_text("saved")
            os._exit(143)

        signal.signal(signal.SIGTERM, save)
    if config.get("memory"):
        raise MemoryError
    if config.get("crash"):
        raise RuntimeError("first line\nsecond line")
    total = config.get("value", 0)
    for source in config.get("sources", []):
        total += float(Path(source).read_text())
    # Works in small steps that survive a kill, like a training with checkpoints.
    progress = folder / "progress"
    done = int(progress.read_text()) if progress.exists() else 0
    for step in range(done, config.get("steps", 0)):
        time.sleep(0.05)
        while step >= 4 and "go" in config and not Path(config["go"]).exists():
            time.sleep(0.02)  # nothing ends before the test says so
        progress.write_text(str(step + 1))
    print("printed by the cell")
    (folder / "value.txt").write_text(str(total))
    result = {"value": total, "pid": os.getpid()}
    if "environment" in config:
        result["environment"] = os.environ.get(config["environment"])
    return result
