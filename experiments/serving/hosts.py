"""Names that a local server answers to.

A page of any site may make its visitor's browser send requests to 127.0.0.1: with a name of its own
that it lets point there (DNS rebinding) it could even read the answers. Such a request carries the
site's name in its Host header, and in Origin. So the server answers only to names that can be its
own.
"""

import ipaddress
import re
import socket
from urllib.parse import urlsplit

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")


class Hosts:
    """The names under which a server may be asked.

    Args:
      listening: the address it listens at.
      allowed: further names; "*" allows all.
    """

    def __init__(self, listening: str, allowed: tuple[str, ...] = ()):
        self._names = {listening.lower(), *(name.lower() for name in allowed)}
        address = _address(listening)
        self._any_address = bool(address and address.is_unspecified)
        if self._any_address:
            self._names |= {"localhost", socket.gethostname().lower()}
        elif listening.lower() == "localhost" or (address and address.is_loopback):
            self._names |= {"localhost", "127.0.0.1", "::1"}

    def refusal(self, environ: dict) -> tuple[int, str] | None:
        """(HTTP status, reason) for a request that does not name this server, else None.

        Args:
          environ: of WSGI. Several headers of one name arrive there joined by commas.
        """
        host = environ.get("HTTP_HOST", "")
        found = _HOST.fullmatch(host)
        if not found:
            return 400, "the request needs one Host header with the server's name"
        name = found["name"].strip("[]").lower()
        if not self._is_mine(name):
            return 421, (
                f"this server does not answer to the name {name[:100]}; start it with "
                f"--allowed_hosts to allow names"
            )
        origin = environ.get("HTTP_ORIGIN")
        if origin is not None and not self._is_from_here(origin, host):
            return 403, "requests from pages of other sites are refused"
        return None

    def _is_mine(self, name: str) -> bool:
        if name in self._names or "*" in self._names:
            return True
        return self._any_address and _address(name) is not None

    def _is_from_here(self, origin: str, host: str) -> bool:
        if "*" in self._names:
            return True
        try:
            return urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False


def _address(name: str):
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
