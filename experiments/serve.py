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

from absl import flags, logging

from official_bert.common import commands
from official_bert.common.errors import UserError

PAGE = Path(__file__).with_name("serve_page.html")


def make_server(app, host: str, port: int):
    """A waitress server for an application, not yet running; port 0 picks a free one.

    Raises:
      UserError: the address is in use or not this machine's.
    """
    import waitress

    try:
        return waitress.create_server(app, host=host, port=port, ident=None, map={})
    except OSError as error:
        raise UserError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error


def main(argv) -> int:
    del argv
    options = flags.FLAGS
    commands.required("model")
    commands.import_tensorflow()
    logging.set_verbosity(logging.WARNING)  # saving a graph writes pages of notes
    with tempfile.TemporaryDirectory() as scratch:
        return _serve(options, _exported(options.model, Path(scratch)))


def _exported(model: str, scratch: Path) -> Path:
    from official_bert.checkpoints import model_folder
    from official_bert.export.client import newest_version

    if not model_folder.is_model_folder(model):
        return newest_version(model)
    from experiments.training.export_model import export

    commands.say(f"{model} is a model folder: exporting it first")
    return export(model, scratch / "model")


def _serve(options, path: Path) -> int:
    import official_bert
    from experiments.serving.rest import create_app
    from official_bert import export as serving
    from official_bert.checkpoints.model_folder import is_model_folder

    model = serving.load(path)
    given = Path(os.path.realpath(options.model))
    name = options.name or (given.parent if given.name.isdecimal() else given).name
    hosts = {"localhost", "127.0.0.1", options.host, socket.gethostname(), *options.allowed_hosts}
    app = create_app(
        model,
        name,
        PAGE.read_text(encoding="utf-8"),
        official_bert.load(options.model) if is_model_folder(options.model) else None,
        max_bytes=options.max_request_bytes,
        max_texts=options.max_texts,
        hosts=hosts,
    )
    server = make_server(app, options.host, options.port)
    _warm_up(model)
    told = f"serving {name} at http://{options.host}:{server.effective_port}/"
    return run_until_told(server, told)


def run_until_told(server, told: str) -> int:
    """Serves until SIGTERM or SIGINT, then answers what it has begun; another one ends that, too.

    Args:
      server: of `make_server`.
      told: what to print as soon as a signal is waited for.

    Returns: the exit code.
    """
    received = []

    def stop(number, _):
        received.append(number)
        raise SystemExit  # on which waitress lets its threads end, within five seconds by default

    dispatcher = server.task_dispatcher
    dispatcher.shutdown = functools.partial(dispatcher.shutdown, timeout=math.inf)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    print(told, flush=True)
    server.run()
    print("stopped", flush=True)
    return 130 if signal.SIGINT in received else 0


def _warm_up(model) -> None:
    """The first call optimises the graph, which takes a second or two: not with a user waiting."""
    texts = {
        name: [["a", "b"]] if spec.shape.rank == 2 else ["a text"]
        for name, spec in model.signatures["serving_default"].structured_input_signature[1].items()
    }
    model(**texts)


def _define_flags():
    flags.DEFINE_string(
        "model", "", "An exported model (of experiments.export), or a model folder."
    )
    flags.DEFINE_string("name", "", "The model's name in addresses; by default its folder's.")
    flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen at; others can reach only this one."
    )
    flags.DEFINE_integer("port", 8501, "Port to listen at; 0 picks a free one.", 0, 65535)
    flags.DEFINE_integer("max_request_bytes", 1_000_000, "Larger requests are refused.", 1)
    flags.DEFINE_integer("max_texts", 256, "Requests with more rows are refused.", 1)
    flags.DEFINE_list(
        "allowed_hosts",
        [],
        "Names under which the server may be asked besides its address, such as that of a proxy; "
        "'*' for all. Other names are refused: pages of other sites could use them.",
    )


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
