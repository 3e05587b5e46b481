"""Results of pieces on disk: one JSON file a piece, written anew after every part."""

import json
import time

from official_bert.common.files import atomic_write


class Results:
    """What a piece has found so far.

    Args:
      path: its JSON file, {"device", "date", "runs": {part: result}}.
      device: this machine's; parts of another device are measured again.
    """

    def __init__(self, path, device):
        self.path = path
        self.values = {"device": device, "date": time.strftime("%Y-%m-%d"), "runs": {}}
        if path.exists():
            before = json.loads(path.read_text())
            if before["device"] == device:
                self.values = before

    def __contains__(self, part):
        """Whether it was run; what was skipped, for want of a package, was not."""
        return "skipped" not in self.values["runs"].get(part, {"skipped": ""})

    def add(self, part, result):
        self.values["runs"][part] = result
        with atomic_write(self.path) as file:
            json.dump(self.values, file, indent=2)
            file.write("\n")
