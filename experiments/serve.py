"""A local server for trying a model out, with a web page.

    python -m experiments.serve --model=exported/spam       # then open http://127.0.0.1:8501

--model is an exported model, or a model folder, which is then exported first. The addresses are
those of TensorFlow Serving, which production should run instead (see the README):

    curl -d '{"instances": ["WINNER!! call now"]}' http://127.0.0.1:8501/v1/models/spam:predict
"""

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from absl import flags, logging

from official_bert.common import commands
from official_bert.common.errors import UserError

PAGE = Path(__file__).with_name("serve_page.html")
# waitress reads a request before the application sees its size: more than this it cuts off itself.
_MOST_BYTES_READ = 64_000_000
_MOST_CONNECTIONS = 2000  # of all clients together


def add_explanations(app, loaded) -> None:
    """Adds the addresses behind the page's "look inside".

    GET /explain says what there is to see, POST /explain {"text", "layer", "mask"} shows it.

    Args:
      app: of `create_app`.
      loaded: `LoadedModel`; None where only an exported model is there: nothing to see.
    """
    import flask

    from experiments.serving.explanation import explain
    from experiments.serving.rest import RequestError, json_body

    config = loaded and loaded.config

    @app.get("/explain")
    def parts():
        if loaded is None:
            return {"layers": 0, "heads": 0}
        return {"layers": config.num_hidden_layers, "heads": config.num_attention_heads}

    @app.post("/explain")
    def look():
        asked = json_body(flask.request)
        asked = asked if isinstance(asked, dict) else {}
        text, layer, mask = asked.get("text"), asked.get("layer", 0), asked.get("mask")
        if loaded is None or not isinstance(text, str) or not text.strip():
            raise RequestError(400, "there is no text to look at")
        if type(layer) is not int or not 0 <= layer < config.num_hidden_layers:
            raise RequestError(400, f"layer must be 0 to {config.num_hidden_layers - 1}")
        if mask is not None and (type(mask) is not int or mask < 1):
            raise RequestError(400, "mask must be the place of a token")
        with app.extensions["gate"].enter():
            try:
                return explain(loaded, text, layer, mask)
            except IndexError:
                raise RequestError(400, f"mask {mask}: the text is shorter") from None


def make_server(
    model,
    name: str,
    host: str = "127.0.0.1",
    port: int = 0,
    limits=None,
    allowed_hosts=(),
    loaded=None,
):
    """A waitress server for an exported model, not yet running.

    Args:
      model: `official_bert.export.load(...)`.
      name: the model's name in addresses.
      host, port: where to listen; port 0 picks a free one (`server.effective_port`).
      limits: `experiments.serving.rest.Limits`.
      allowed_hosts: names under which it may be asked besides its address; "*" for all.
      loaded: `LoadedModel` that the page lets one look inside of; None: nothing to look at.

    Raises:
      UserError: the address is in use or not this machine's.
    """
    import waitress

    from experiments.serving.channels import channel_class
    from experiments.serving.hosts import Hosts
    from experiments.serving.rest import Limits, create_app

    limits, sockets = limits or Limits(), {}
    hosts = Hosts(host, tuple(allowed_hosts))
    app = create_app(model, name, PAGE.read_text(encoding="utf-8"), limits, hosts)
    add_explanations(app, loaded)
    try:
        server = waitress.create_server(
            app,
            map=sockets,
            host=host,
            port=port,
            # A thread for each request that may wait, and some to refuse the others with.
            threads=limits.queue + 4,
            max_request_body_size=max(_MOST_BYTES_READ, limits.request_bytes),
            connection_limit=_MOST_CONNECTIONS,
            asyncore_use_poll=True,  # select() ends at 1,024 files
            ident=None,
        )
    except OSError as error:
        raise UserError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    server.channel_class = channel_class(limits.request_seconds, limits.client_connections)
    server.gate, server.sockets = app.extensions["gate"], sockets
    return server


def stop(server, seconds: float = 10.0) -> None:
    """Refuses new requests, finishes those under way, and ends `server.run` in its thread.

    Requests that need longer than `seconds` are cut off.
    """
    server.gate.stop(seconds)
    time.sleep(0.2)  # the answers are computed; the loop that still runs sends them
    server.trigger.pull_trigger(lambda: server.asyncore.close_all(server.sockets, ignore_all=True))


def main(argv) -> int:
    del argv
    options = flags.FLAGS
    if not options.model:
        raise UserError("--model is missing; see --help")
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

    print(f"{model} is a model folder: exporting it first", file=sys.stderr)
    return export(model, scratch / "model")


def _serve(options, path: Path) -> int:
    import official_bert
    from experiments.serving.rest import Limits
    from official_bert import export as serving
    from official_bert.checkpoints.model_folder import is_model_folder

    model = serving.load(path)
    given = Path(os.path.realpath(options.model))
    name = options.name or (given.parent if given.name.isdecimal() else given).name
    limits = Limits(
        options.max_request_bytes,
        options.max_texts,
        options.queue,
        options.parallel,
        options.request_seconds,
        options.client_connections,
    )
    loaded = official_bert.load(options.model) if is_model_folder(options.model) else None
    hosts = options.allowed_hosts or ()
    server = make_server(model, name, options.host, options.port, limits, hosts, loaded)
    _warm_up(model)
    signals = _stop_when_told(server)
    print(f"serving {name} at http://{options.host}:{server.effective_port}/", flush=True)
    server.run()  # until a signal
    print("stopped", flush=True)
    return 130 if signal.SIGINT in signals else 0


def _warm_up(model) -> None:
    """The first call optimises the graph, which takes a second or two: not with a user waiting."""
    texts = {
        name: [["a", "b"]] if spec.shape.rank == 2 else ["a text"]
        for name, spec in model.signatures["serving_default"].structured_input_signature[1].items()
    }
    model(**texts)


def _stop_when_told(server) -> list:
    """At SIGTERM or Ctrl-C stops gracefully, at the second one at once.

    Returns a list that will hold the signals.
    """
    received = []

    def on_signal(number, _):
        received.append(number)
        if len(received) > 1:
            raise SystemExit
        threading.Thread(target=stop, args=[server], daemon=True).start()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return received


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
    flags.DEFINE_integer("queue", 32, "Requests that may wait; one more is refused.", 1)
    flags.DEFINE_list(
        "allowed_hosts",
        [],
        "Names under which the server may be asked besides its address, such as that of a proxy; "
        "'*' for all. Other names are refused: pages of other sites could use them.",
    )
    flags.DEFINE_float("request_seconds", 20.0, "Slower requests are cut off.", 0.1)
    flags.DEFINE_integer("client_connections", 64, "Connections that one address may hold.", 1)
    flags.DEFINE_integer("parallel", 2, "Batches that are computed at the same time.", 1)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
