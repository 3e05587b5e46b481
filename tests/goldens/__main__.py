"""Write the goldens: `python -m tests.goldens steps`, or `formats`."""

import json
import sys
from pathlib import Path

from tests.goldens import formats, steps

if __name__ == "__main__":
    for what in sys.argv[1:]:
        if what == "steps":
            known = {name: steps.taken(name) for name in steps.STEPS}
            steps.PATH.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        else:
            formats.write(Path(formats.ARCHIVE))
