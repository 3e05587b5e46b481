"""A local server answers to its own name only."""

import socket

import pytest

from experiments.serving.hosts import Hosts


def status(hosts, **headers):
    environ = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    refused = hosts.refusal(environ)
    return refused[0] if refused else 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8501", 200),
        ("localhost", 200),
        ("[::1]:8501", 200),
        ("LOCALHOST:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8501", 421),
        ("192.168.1.5", 421),
        ("", 400),
        ("localhost, evil.example", 400),
        ("localhost,localhost", 400),
        ("localhost/", 400),
        ("user@localhost", 400),
        ("localhost:8501:8501", 400),
    ],
)
def test_names(host, expected):
    assert status(Hosts("127.0.0.1"), host=host) == expected


def test_a_request_without_a_name_is_refused():
    assert status(Hosts("127.0.0.1")) == 400


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:8501", 200),
        ("http://localhost:3000", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://[bad", 403),
        ("", 403),
    ],
)
def test_pages(origin, expected):
    assert status(Hosts("127.0.0.1"), host="localhost:8501", origin=origin) == expected


def test_names_can_be_allowed():
    named = Hosts("127.0.0.1", ("Spam.Example",))
    assert status(named, host="spam.example:80") == 200
    assert status(named, host="evil.example") == 421
    assert status(Hosts("10.0.0.5"), host="10.0.0.5:8501") == 200
    assert status(Hosts("10.0.0.5"), host="localhost") == 421
    everywhere = Hosts("0.0.0.0")
    assert status(everywhere, host="192.168.1.5:8501") == 200
    assert status(everywhere, host=socket.gethostname()) in (200, 400)  # of unusual characters
    assert status(everywhere, host="evil.example") == 421
    anyone = Hosts("0.0.0.0", ("*",))
    assert status(anyone, host="evil.example", origin="http://other.example") == 200
