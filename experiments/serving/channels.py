"""Connections that cannot keep others out: a deadline for every request, a number for every client.

waitress closes connections where nothing happens for a while; a client that sends a byte now and
then stays for ever. Here a request has so many seconds from its first byte, or from the connection,
to its last one, whatever happens in between.
"""

import time

from waitress.channel import HTTPChannel


def channel_class(request_seconds: float, client_connections: int) -> type[HTTPChannel]:
    """A class for the `channel_class` of a waitress server.

    Args:
      request_seconds: from a request's first byte to its last.
      client_connections: open at the same time from one address; one more ends the one of them
        that has waited longest without a request in work, or itself where all have one.
    """

    class Channel(HTTPChannel):
        def __init__(self, server, sock, addr, adj, map=None):
            super().__init__(server, sock, addr, adj, map=map)
            self.began = time.monotonic()
            mine = [c for c in server.active_channels.values() if c.addr[0] == addr[0]]
            if len(mine) > client_connections:
                idle = [channel for channel in mine if not channel.requests]
                oldest = min(idle, key=lambda channel: channel.began, default=self)
                oldest.handle_close()

        def received(self, data):
            if self.request is None and not self.requests:
                self.began = time.monotonic()  # a further request on the same connection
            return super().received(data)

        def readable(self):  # asked in every turn of the server's loop, once a second at least
            late = time.monotonic() - self.began > request_seconds
            if late and self.connected and not self.requests and not self.total_outbufs_len:
                self.will_close = True
            return super().readable()

    return Channel
