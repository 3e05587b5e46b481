"""A local server for trying a model out, with a web page.

    python -m experiments.serve --model=exported/spam       # then open http://127.0.0.1:8501

--model is an exported model. A model folder is exported first. The addresses are those of
TensorFlow Serving, which production should run instead (docs/serving.md):

    curl -d '{"instances": ["WINNER!! call now"]}' http://127.0.0.1:8501/v1/models/spam:predict
"""

import functools
import math
import os
import signal
import socket
import tempfile
from pathlib import Path

from absl import logging

from data_prep.jobs import command_flags, commands
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError

PAGE = Path(__file__).with_name("serve_page.html")


def make_server(app, host: str, port: int):
    """Return a waitress server for an application, not yet running; port 0 picks a free one.

    Raises:
      UserError: the address is in use, not this machine's, or not an address.
    """
    import waitress

    if not 0 <= port < 1 << 16:
        raise UserError(f"--port={port}: a port is a number from 0 to 65535")
    try:
        return waitress.create_server(app, host=host, port=port, ident=None, map={})
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen at {host}:{port}: {reason}") from error


def serve(
    model: str,
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 8501,
    max_request_bytes: int = 1_000_000,
    max_texts: int = 256,
    allowed_hosts: tuple[str, ...] = (),
) -> int:
    """Serve a model until it is told to stop.

    Args:
      model: an exported model (of experiments.export), or a model folder.
      name: the model's name in addresses; by default its folder's.
      host: address to listen at; the server is reached at no other.
      port: port to listen at; 0 picks a free one.
      max_request_bytes: larger requests are refused.
      max_texts: requests with more rows are refused.
      allowed_hosts: names besides its address under which the server answers, such as a proxy's;
        '*' for all. Other names are refused: pages of other sites could use them.

    Returns: the exit code.
    Raises:
      UserError: the model cannot be served, or the server cannot listen at the address.
    """
    if ":" in host and not allowed_hosts:  # werkzeug reads names, and addresses with dots
        raise UserError(
            f"--host={host}: the server would refuse requests to an address of IPv6; give the "
            "names that clients use with --allowed_hosts, or '*' for all"
        )
    tensorflow_start.import_tensorflow()
    import official_bert
    from experiments.serving.rest import create_app
    from official_bert import export as serving
    from official_bert.checkpoints.model_folder import is_model_folder

    logging.set_verbosity(logging.WARNING)  # saving a graph writes pages of notes
    with tempfile.TemporaryDirectory() as scratch:
        served = serving.load(_exported(model, Path(scratch)))
        given = Path(os.path.realpath(model))
        name = name or (given.parent if given.name.isdecimal() else given).name
        app = create_app(
            served,
            name,
            PAGE.read_text(encoding="utf-8"),
            official_bert.load(model) if is_model_folder(model) else None,
            max_bytes=max_request_bytes,
            max_texts=max_texts,
            hosts={"localhost", "127.0.0.1", host, socket.gethostname(), *allowed_hosts},
        )
        server = make_server(app, host, port)
        if served.description:  # the inputs of other SavedModels may not be texts
            _warm_up(served)
        address = f"http://{f'[{host}]' if ':' in host else host}:{server.effective_port}/"
        return run_until_signal(server, f"serving {name} at {address}")


def main(_) -> int:
    return serve(**command_flags.values(serve))


def _exported(model: str, scratch: Path) -> Path:
    from official_bert.checkpoints import model_folder
    from official_bert.export.client import newest_version

    if not model_folder.is_model_folder(model):
        return newest_version(model)
    from experiments.training.answers.export_model import export

    commands.say(f"{model} is a model folder: exporting it first")
    return export(model, scratch / "model")


def run_until_signal(server, ready: str) -> int:
    """Serve until SIGTERM or SIGINT, then finish the requests begun; a second signal ends these
    too.

    Args:
      server: of `make_server`.
      ready: line to print once the signals are handled.

    Returns: the exit code.
    """
    received = []

    def stop(number, _):
        received.append(number)
        raise SystemExit  # waitress then lets its threads end, by default within five seconds

    dispatcher = server.task_dispatcher
    dispatcher.shutdown = functools.partial(dispatcher.shutdown, timeout=math.inf)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    print(ready, flush=True)
    server.run()
    print("stopped", flush=True)
    return 130 if signal.SIGINT in received else 0


def _warm_up(model) -> None:
    """Ask the model once: its first call optimises the graph, which takes a second or two."""
    texts = {
        name: [["a", "b"]] if spec.shape.rank == 2 else ["a text"]
        for name, spec in model.signatures["serving_default"].structured_input_signature[1].items()
    }
    model(**texts)


def _define_flags():
    command_flags.define(serve, least={"max_request_bytes": 1, "max_texts": 1})


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
