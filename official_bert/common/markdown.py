"""Tables in Markdown, and other people's texts inside Markdown."""

import re
from collections.abc import Sequence


def plain(text: str) -> str:
    """Escape another's text so that it brings no HTML and no picture from elsewhere."""
    return re.sub(r"<|!(?=\[)", r"\\\g<0>", text)


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose first row is the header; numbers align right.

    A row whose label is indented belongs to the one above it and is set in italics.
    """
    shown = [[cell.strip().replace("|", "\\|") for cell in row] for row in rows]
    _, *columns = zip(*(shown[1:] or shown), strict=True)
    right = [False, *(all(cell[:1] in "-+−0123456789" for cell in c) for c in columns)]
    for row, cells in zip(rows, shown, strict=True):
        if row[0].startswith(" "):
            cells[:] = [f"*{cell}*" if cell else "" for cell in cells]
    lines = ["| " + " | ".join(cells) + " |" for cells in shown]
    lines.insert(1, "|" + "|".join("---:" if is_right else "---" for is_right in right) + "|")
    return lines
