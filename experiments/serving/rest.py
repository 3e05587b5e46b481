"""A small web application around an exported model, for trying it out.

It speaks the predict part of TensorFlow Serving's REST interface, so that a client written against
it works against TensorFlow Serving, which is what production should run:

    POST /v1/models/NAME:predict   {"instances": [...]} or {"inputs": {...}}
    GET  /v1/models/NAME           state of the model
    GET  /v1/models/NAME/metadata  signatures
    GET  /health                   {"status": "ok"}, 503 while stopping
    GET  /metrics                  counts and times for Prometheus
    GET  /                         the web page; /model.json is what it needs to know

Wrong requests get a status from 400 to 429 and {"error": what is wrong}. A request must name the
address that the server listens at (see `experiments.serving.hosts`): no page of another site can
reach it through the browser of someone who opens it.
"""

import base64
import binascii
import contextlib
import threading
import time
from typing import Any, NamedTuple

import flask
import numpy as np
from werkzeug.exceptions import HTTPException

from experiments.serving.batching import Batcher
from experiments.serving.hosts import Hosts
from experiments.serving.metrics import Metrics
from official_bert.common.errors import UserError
from official_bert.common.json_files import parse_json, shorten

_DEFAULT_SIGNATURE = "serving_default"


class Limits(NamedTuple):
    """What a request may ask for.

    Attributes:
      request_bytes: size of a request's body.
      texts: rows of one request.
      queue: requests that are worked on or wait; one more is refused with 429.
      parallel: batches that are computed at the same time; requests that wait share one.
      request_seconds: from a request's first byte to its last, however busy the client is.
      client_connections: open at the same time from one address; one more ends the idlest.
    """

    request_bytes: int = 1_000_000
    texts: int = 256
    queue: int = 32
    parallel: int = 2
    request_seconds: float = 20.0
    client_connections: int = 64


class RequestError(Exception):
    """A request that cannot be answered: HTTP status and what to tell the client."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Gate:
    """Counts requests: refuses those beyond the queue, and all while the server stops."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._lock = threading.Condition()
        self._inside = 0
        self.stopping = False

    @contextlib.contextmanager
    def enter(self):
        """Holds one of the places; raises RequestError where there is none."""
        with self._lock:
            if self.stopping:
                raise RequestError(503, "the server is stopping")
            if self._inside >= self._limits.queue:
                raise RequestError(
                    429, f"{self._inside} requests are waiting already; try again later"
                )
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._lock.notify_all()

    @property
    def inside(self) -> int:
        return self._inside

    def stop(self, seconds: float) -> bool:
        """Lets nobody in any more and waits for those inside; False if some remain."""
        with self._lock:
            self.stopping = True
            return self._lock.wait_for(lambda: self._inside == 0, seconds)


def create_app(
    model, name: str, page: str, limits: Limits | None = None, hosts: Hosts | None = None
) -> flask.Flask:
    """The application.

    Args:
      model: `client.ExportedModel`.
      name: the model's name in addresses.
      page: HTML of the web page.
      limits: see `Limits`.
      hosts: under which names it may be asked; by default those of this machine's own address.
    """
    limits, hosts, metrics = limits or Limits(), hosts or Hosts("127.0.0.1"), Metrics()
    app = flask.Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = limits.request_bytes
    app.json.sort_keys = False
    gate = app.extensions["gate"] = Gate(limits)
    run = Batcher(
        lambda signature, inputs: _run(model, signature, inputs),
        model.signatures,
        limits.parallel,
        limits.texts,
    )
    version = model.path.name if model.path.name.isdecimal() else "1"
    model_path = f"/v1/models/{name}"

    @app.before_request
    def begin():
        flask.g.began = time.perf_counter()
        refused = hosts.refusal(flask.request.environ)
        if refused:
            raise RequestError(*refused)

    @app.get("/metrics")
    def numbers():
        text = metrics.text(queue=gate.inside, queue_limit=limits.queue, stopping=gate.stopping)
        return flask.Response(text, mimetype="text/plain; version=0.0.4")

    @app.post(f"{model_path}:predict")
    @app.post(f"{model_path}/versions/{version}:predict")
    def predict():
        with gate.enter():
            request = json_body(flask.request)
            signature, inputs, by_row = parse_request(request, model.signatures, limits.texts)
            return format_outputs(run(signature, inputs), by_row)

    @app.get(model_path)
    @app.get(f"{model_path}/versions/{version}")
    def state():
        fine = {"error_code": "OK", "error_message": ""}
        status = {"version": version, "state": "AVAILABLE", "status": fine}
        return {"model_version_status": [status]}

    @app.get(f"{model_path}/metadata")
    @app.get(f"{model_path}/versions/{version}/metadata")
    def metadata():
        return {
            "model_spec": {"name": name, "signature_name": "", "version": version},
            "metadata": {"signature_def": {"signature_def": signature_defs(model.path)}},
        }

    @app.get("/health")
    def health():
        return ({"status": "stopping"}, 503) if gate.stopping else {"status": "ok"}

    @app.get("/model.json")
    def description():
        return {"name": name, "predict": f"{model_path}:predict", **model.description}

    @app.get("/")
    def index():
        return flask.Response(page, mimetype="text/html")

    @app.errorhandler(RequestError)
    def refuse(error):
        return {"error": str(error)}, error.status

    @app.errorhandler(HTTPException)
    def refuse_http(error):
        message = error.description
        if error.code == 413:
            message = f"the request is larger than {limits.request_bytes:,} bytes"
        if error.code == 404:
            message = f"nothing is at {flask.request.path}; the model is at {model_path}"
        return {"error": message}, error.code

    @app.after_request
    def headers(response):
        # The page holds its own style and script and loads nothing from anywhere else.
        response.headers["Content-Security-Policy"] = (
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        route = flask.request.url_rule.rule if flask.request.url_rule else "other"
        metrics.count(route, response.status_code, time.perf_counter() - flask.g.began)
        return response

    return app


def parse_request(request: Any, signatures: dict, most_rows: int):
    """Checks a predict request.

    Args:
      request: the decoded JSON.
      signatures: {name: concrete function} of the model.
      most_rows: rows that a request may have.

    Returns:
      (signature name, {input name: array}, whether the request was in rows ("instances")).

    Raises:
      RequestError: what is wrong with it, and where.
    """
    if not isinstance(request, dict):
        raise RequestError(400, 'the request must be a JSON object with "instances" or "inputs"')
    unknown = sorted(set(request) - {"signature_name", "instances", "inputs"})
    if unknown:
        raise RequestError(400, f"unknown field {unknown[0]!r} in the request")
    if ("instances" in request) == ("inputs" in request):
        raise RequestError(400, 'the request needs either "instances" or "inputs"')
    signature = request.get("signature_name", _DEFAULT_SIGNATURE)
    if not isinstance(signature, str) or signature not in signatures:
        known = ", ".join(sorted(signatures))
        raise RequestError(400, f"no signature {signature!r}; there are {known}")
    specs = signatures[signature].structured_input_signature[1]
    by_row = "instances" in request
    columns = _columns(request["instances"]) if by_row else request["inputs"]
    if not isinstance(columns, dict):
        if len(specs) > 1:
            raise RequestError(400, f"give the inputs by name: {', '.join(sorted(specs))}")
        columns = {next(iter(specs)): columns}
    if set(columns) != set(specs):
        given, wanted = ", ".join(sorted(map(str, columns))), ", ".join(sorted(specs))
        raise RequestError(400, f"the inputs are {given or 'none'}; they must be {wanted}")
    arrays = {name: _array(name, columns[name], spec, most_rows) for name, spec in specs.items()}
    rows = {name: len(array) for name, array in arrays.items()}
    if len(set(rows.values())) > 1:
        raise RequestError(400, f"inputs of different length: {rows}")
    return signature, arrays, by_row


def format_outputs(outputs: dict[str, Any], by_row: bool) -> dict[str, Any]:
    """{output: array} as the answer: rows for "instances", columns for "inputs".

    As in TensorFlow Serving, a single output comes without its name.
    """
    columns = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in outputs.items()
    }
    if not by_row:
        return {"outputs": columns if len(columns) > 1 else next(iter(columns.values()))}
    if len(columns) == 1:
        return {"predictions": next(iter(columns.values()))}
    rows = zip(*columns.values(), strict=True)
    return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}


def signature_defs(path) -> dict[str, Any]:
    """The signatures in a SavedModel as plain data, as TensorFlow Serving shows them."""
    from google.protobuf import json_format
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    return {
        name: json_format.MessageToDict(definition, preserving_proto_field_name=True)
        for name, definition in saved.meta_graphs[0].signature_def.items()
        if not name.startswith("__")
    }


def json_body(request) -> Any:
    """The JSON value of a request's body.

    Raises:
      RequestError: it is no JSON, or is nested too deeply.
    """
    try:
        return parse_json(request.get_data(cache=False), "the request", kind=None)
    except UserError as error:
        raise RequestError(400, str(error)) from None


def _columns(instances):
    """Rows -> columns: a list stays a list, a list of objects becomes an object of lists."""
    if not isinstance(instances, list):
        raise RequestError(400, '"instances" must be a list')
    # {"b64": ...} is a value, not a row of named inputs.
    if not any(isinstance(row, dict) and set(row) != {"b64"} for row in instances):
        return instances
    names = set(instances[0]) if isinstance(instances[0], dict) else set()
    for index, row in enumerate(instances):
        if not isinstance(row, dict) or set(row) != names:
            raise RequestError(400, f"instances[{index}] has other inputs than instances[0]")
    return {name: [row[name] for row in instances] for name in names}


def _array(name, value, spec, most_rows) -> np.ndarray:
    if not isinstance(value, list):
        raise RequestError(400, f"{name} must be a list, one entry a row")
    if len(value) > most_rows:
        raise RequestError(413, f"{len(value):,} rows in {name}; at most {most_rows} a request")
    rank = spec.shape.rank
    read = _text if spec.dtype == "string" else _number
    values = _values(name, value, rank, read)
    if rank == 1 and read is _text:
        for index, text in enumerate(values):
            if not text.strip():
                raise RequestError(400, f"{name}[{index}] is empty; there is nothing to answer")
    try:
        array = np.array(values, dtype=object if read is _text else np.int32)
    except ValueError:
        array = None
    if array is None or (array.size and array.ndim != rank):
        raise RequestError(400, f"{name}: the lists in it must be of equal length")
    return array if array.size else array.reshape([len(value)] + [0] * (rank - 1))


def _values(where, value, rank, read):
    """Checks nesting and types of one input; returns it with texts as bytes."""
    if rank == 0:
        return read(where, value)
    if not isinstance(value, list):
        raise RequestError(400, f"{where} must be a list")
    return [_values(f"{where}[{i}]", part, rank - 1, read) for i, part in enumerate(value)]


def _text(where, value) -> bytes:
    if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            raise RequestError(400, f"{where} is not base64") from None
    if not isinstance(value, str):
        raise RequestError(400, f"{where} must be a text, not {shorten(value, 50)}")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(400, f"{where} holds half a character (a lone surrogate)") from None


def _number(where, value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise RequestError(400, f"{where} must be a 32-bit integer, not {shorten(value, 50)}")
    return value


def _run(model, signature, inputs):
    import tensorflow as tf

    try:
        return model(signature, **inputs)
    except tf.errors.InvalidArgumentError as error:
        lines = [line for line in error.message.splitlines() if line.strip()]
        raise RequestError(400, f"the model refused the input: {_reason(lines)}") from None


def _reason(lines: list[str]) -> str:
    # The graph's own message stands behind the position in the graph.
    told = [line for line in lines if "must be" in line or "not in" in line]
    return (told or lines or [""])[-1][:300]
