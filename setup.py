"""Parts of a release that pyproject.toml cannot say: README for the index, archives of equal bytes.

The index shows README away from its repository, so relative links get the address of this version's
files, which begins with `project.urls.Source`. Without that address they are left out.
With SOURCE_DATE_EPOCH two builds of one commit give the same sdist and the same wheel.
"""

import gzip
import os
import re
import tarfile
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def readme(text: str, source: str, version: str) -> str:
    """Return README with absolute links and pictures.

    Args:
      source: address of the repository; "" leaves pictures out, and of links the text alone.
    """

    def absolute(found: re.Match) -> str:
        is_picture, shown, target = found.groups()
        if re.match("[a-z]+:", target):
            return f"{is_picture}[{_LINK.sub(absolute, shown)}]({target})"
        if not source:
            return "" if is_picture else _LINK.sub(absolute, shown)
        place = "" if target.startswith("#") else f"/{'raw' if is_picture else 'blob'}/v{version}/"
        return f"{is_picture}[{_LINK.sub(absolute, shown)}]({source}{place}{target})"

    blocks = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(b if b.startswith("`") else _LINK.sub(absolute, b) for b in blocks)


class SameSdist(sdist):
    """An sdist whose bytes follow from its files alone."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **_):
        """Return the path of the archive: names in order, one date, no owner."""
        date = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800))  # 1980, as wheels have it
        path = f"{base_name}.tar.gz"

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid, member.uname, member.gname = date, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", mtime=date, fileobj=file) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=plain)  # which sorts
        return path


class SameWheel(bdist_wheel):
    """A wheel whose files have one mode, whatever those of the checkout have."""

    def write_wheelfile(self, *arguments, **options):
        """Write the last file of the tree, and set the modes of all."""
        super().write_wheelfile(*arguments, **options)
        for path in Path(self.bdist_dir).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    os.umask(0o022)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    address = project.get("urls", {}).get("Source", "")
    text = readme((ROOT / "README.md").read_text("utf-8"), address, project["version"])
    setup(
        long_description=text,
        long_description_content_type="text/markdown",
        cmdclass={"sdist": SameSdist, "bdist_wheel": SameWheel},
    )
