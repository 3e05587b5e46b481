"""Results of pieces on disk: one JSON file a piece, written anew after every part."""

import json
import time

from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.common.json_files import field, read_json

OPTIONS = "options.json"


class Results:
    """The results of a piece so far.

    Args:
      path: its JSON file, {"device", "date", "runs": {part: result}}.
      device: this machine's.

    Raises:
      UserError: see `read`.
    """

    def __init__(self, path, device):
        self.path = path
        self.values = {"device": device, "date": time.strftime("%Y-%m-%d"), "runs": {}}
        if path.exists():
            self.values = read(path)

    def __contains__(self, part):
        """Return whether a part was run; one that was skipped, for want of a package, was not."""
        return "skipped" not in self.values["runs"].get(part, {"skipped": ""})

    def add(self, part, result):
        self.values["runs"][part] = result
        write_text(self.path, json.dumps(self.values, indent=2) + "\n", own=True)


def read(path):
    """Read a file that `Results` wrote.

    Raises:
      UserError: the file is damaged.
    """
    try:
        found = read_json(path)
        for name, kind in (("device", str), ("date", str), ("runs", dict)):
            field(found, name, kind, path)
    except UserError as error:
        raise UserError(f"{error}; move it away, and its piece is measured again") from None
    return found


def check_options(folder, asked):
    """Write the options that decide the figures of a folder, or compare them with those written
    there.

    Raises:
      UserError: the figures that lie there are of another device or other options.
    """
    path = folder / OPTIONS
    before = read_json(path) if path.exists() else asked
    if differ := [name for name in asked if before.get(name) != asked[name]]:
        described = ", ".join(f"{name} {before.get(name)}, not {asked[name]}" for name in differ)
        raise UserError(f"{folder} holds figures of {described}; choose another --output")
    write_text(path, json.dumps(asked, indent=2) + "\n", own=True)
