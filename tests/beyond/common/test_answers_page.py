"""docs/answers.md names every architecture that `load` takes."""

import re
from pathlib import Path

from official_bert.checkpoints import members

PAGE = Path(__file__).parents[3] / "docs" / "answers.md"


def test_every_architecture_is_named():
    listed = re.search(r"`model_type` (.*?)\)", PAGE.read_text("utf-8"), re.DOTALL)[1]
    assert set(re.split(r",\s+", listed)) == set(members.known())
