"""A small web application around an exported model, for trying it out.

It speaks the predict part of TensorFlow Serving's REST interface, so that its clients also work
with TensorFlow Serving, which production should run:

    POST /v1/models/NAME:predict   {"instances": [...]} or {"inputs": {...}}
    GET  /v1/models/NAME           state of the model
    GET  /v1/models/NAME/metadata  signatures
    GET  /health                   {"status": "ok"}
    GET  /                         the web page; /model.json is what it needs to know
    GET  /explain                  what its "look inside" can show; POST {"text", "layer", "mask"}

Requests are answered one after another. Wrong ones get a status from 400 to 413 and {"error": what
is wrong}. Any site's page may make its visitor's browser send requests to 127.0.0.1. If the site
lets a name of its own point there (DNS rebinding), the page could even read the answers. Such a
request carries that name in its Host header, and in Origin; it is refused.
"""

import base64
import threading
from typing import Any

import flask
import numpy as np
from werkzeug.exceptions import HTTPException, SecurityError

from experiments.serving.explanation import explain
from official_bert.common.errors import UserError, first_line
from official_bert.common.json_files import parse_json, shorten, whole_characters

_DEFAULT_SIGNATURE = "serving_default"


class RequestError(Exception):
    """A request that cannot be answered: what to tell the client, and the HTTP status."""

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


def create_app(
    model,
    name: str,
    page: str,
    loaded=None,
    *,
    max_bytes=1_000_000,
    max_texts=256,
    hosts=("localhost", "127.0.0.1"),
) -> flask.Flask:
    """Return the application.

    Args:
      model: `client.ExportedModel`.
      name: the model's name in addresses.
      page: HTML of the web page.
      loaded: `LoadedModel` whose inside the page shows; None: the page shows none.
      max_bytes: largest size of a request's body.
      max_texts: most rows of a request.
      hosts: names under which it answers clients and its own page; "*" for all.

    Raises:
      UserError: the name cannot be part of an address.
    """
    if set("<>") & set(name):
        raise UserError(f"--name={name}: an address has no < or >; choose another name")
    app = flask.Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_bytes
    app.config["TRUSTED_HOSTS"] = None if "*" in hosts else [*map(str.lower, hosts)]
    app.json.sort_keys = False
    one_at_a_time = threading.Lock()
    version = model.path.name if model.path.name.isdecimal() else "1"
    model_path = f"/v1/models/{name}"

    @app.before_request
    def refuse_pages_of_other_sites():
        asking, asked = flask.request.headers.get("Origin"), flask.request.headers.get("Host")
        if asking and asking.partition("//")[2] != asked and "*" not in hosts:
            raise RequestError("requests from pages of other sites are refused", 403)

    @app.post(f"{model_path}:predict")
    @app.post(f"{model_path}/versions/{version}:predict")
    def predict():
        signature, inputs, by_row = parse_request(_json_body(), model.signatures, max_texts)
        with one_at_a_time:
            outputs = _run(model, signature, inputs)
        return format_outputs(outputs, by_row)

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
            "metadata": {"signature_def": {"signature_def": model.signature_defs}},
        }

    @app.get("/health")
    def health():
        return {"status": "ok"}

    @app.get("/model.json")
    def description():
        return {"name": name, "predict": f"{model_path}:predict", **model.description}

    @app.get("/")
    def index():
        return flask.Response(page, mimetype="text/html")

    @app.get("/explain")
    def parts():
        config = loaded and loaded.config
        return {
            "layers": config.num_hidden_layers if config else 0,
            "heads": config.num_attention_heads if config else 0,
        }

    @app.post("/explain")
    def look():
        asked = _json_body()
        asked = asked if isinstance(asked, dict) else {}
        text, layer, mask = asked.get("text"), asked.get("layer", 0), asked.get("mask")
        if loaded is None or not isinstance(text, str) or not text.strip():
            raise RequestError("there is no text to look at")
        if type(layer) is not int or not 0 <= layer < loaded.config.num_hidden_layers:
            raise RequestError(f"layer must be 0 to {loaded.config.num_hidden_layers - 1}")
        if mask is not None and (type(mask) is not int or mask < 1):
            raise RequestError("mask must be the place of a token")
        try:
            with one_at_a_time:
                return explain(loaded, text, layer, mask)
        except IndexError:
            raise RequestError(f"mask {mask}: the text is shorter") from None

    @app.errorhandler(RequestError)
    def refuse(error):
        return {"error": str(error)}, error.status

    @app.errorhandler(UserError)
    def refuse_use(error):
        return {"error": str(error)}, 400

    @app.errorhandler(HTTPException)
    def refuse_http(error):
        message = error.description
        if error.code == 413:
            message = f"the request is larger than {max_bytes:,} bytes"
        if error.code == 404:
            message = f"nothing is at {flask.request.path}; the model is at {model_path}"
        if isinstance(error, SecurityError):
            message = "the server does not answer to this name; --allowed_hosts allows names"
        return {"error": message}, error.code

    @app.after_request
    def headers(response):
        # The page holds its own style and script and loads nothing from anywhere else.
        response.headers["Content-Security-Policy"] = (
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return app


def parse_request(request: Any, signatures: dict, max_texts: int):
    """Check a predict request.

    Args:
      request: the decoded JSON.
      signatures: {name: concrete function} of the model.
      max_texts: rows that a request may have.

    Returns:
      (signature name, {input name: tensor}, whether the request was in rows ("instances")).

    Raises:
      RequestError: it is wrong; the message says what and where.
    """
    if not isinstance(request, dict):
        raise RequestError('the request must be a JSON object with "instances" or "inputs"')
    unknown = sorted(set(request) - {"signature_name", "instances", "inputs"})
    if unknown:
        raise RequestError(f"unknown field {unknown[0]!r} in the request")
    if ("instances" in request) == ("inputs" in request):
        raise RequestError('the request needs either "instances" or "inputs"')
    signature = request.get("signature_name", _DEFAULT_SIGNATURE)
    if not isinstance(signature, str) or signature not in signatures:
        raise RequestError(f"no signature {signature!r}; there are {', '.join(sorted(signatures))}")
    specs = signatures[signature].structured_input_signature[1]
    by_row = "instances" in request
    columns = _columns(request["instances"]) if by_row else request["inputs"]
    if not isinstance(columns, dict):
        if len(specs) > 1:
            raise RequestError(f"give the inputs by name: {', '.join(sorted(specs))}")
        columns = {next(iter(specs)): columns}
    if set(columns) != set(specs):
        given, wanted = ", ".join(sorted(map(str, columns))), ", ".join(sorted(specs))
        raise RequestError(f"the inputs are {given or 'none'}; they must be {wanted}")
    tensors = {name: _tensor(name, columns[name], spec, max_texts) for name, spec in specs.items()}
    rows = {name: len(array) for name, array in tensors.items()}
    if len(set(rows.values())) > 1:
        raise RequestError(f"inputs of different length: {rows}")
    return signature, tensors, by_row


def format_outputs(outputs: dict[str, Any], by_row: bool) -> dict[str, Any]:
    """Return {output: array} as the answer: rows for "instances", columns for "inputs".

    A single output comes without its name, as in TensorFlow Serving.
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


def _json_body() -> Any:
    """Return the JSON value of the request's body, lone surrogates replaced by U+FFFD, as in
    files."""
    body = flask.request.get_data(cache=False)
    try:
        value = parse_json(body, "the request", kind=None)
        return whole_characters(value, body.decode("utf-8-sig"))
    except UserError as error:
        raise RequestError(str(error)) from None


def _columns(instances):
    """Return rows -> columns: a list stays a list, a list of objects becomes an object of lists."""
    if not isinstance(instances, list):
        raise RequestError('"instances" must be a list')
    # {"b64": ...} is a value, not a row of named inputs.
    if not any(isinstance(row, dict) and set(row) != {"b64"} for row in instances):
        return instances
    names = set(instances[0]) if isinstance(instances[0], dict) else set()
    for index, row in enumerate(instances):
        if not isinstance(row, dict) or set(row) != names:
            raise RequestError(f"instances[{index}] has other inputs than instances[0]")
    return {name: [row[name] for row in instances] for name in names}


def _tensor(name, value, spec, max_texts):
    """Return one input as a tensor of its type and shape."""
    import tensorflow as tf

    try:
        tensor = tf.constant(_decoded(value), spec.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(f"{name}: {first_line(error)[:300]}") from None
    if value == []:
        tensor = tf.zeros([0] * spec.shape.rank, spec.dtype)
    if not spec.shape.is_compatible_with(tensor.shape):
        raise RequestError(f"{name} has the shape {tensor.shape}; it must be {spec.shape}")
    if len(tensor) > max_texts:
        raise RequestError(f"{len(tensor):,} rows in {name}; at most {max_texts} a request", 413)
    return tensor


def _decoded(value):
    """Return the value with every {"b64": text} in it as bytes."""
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if isinstance(value, dict) and set(value) == {"b64"}:
        return base64.b64decode(value["b64"], validate=True)
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) >= 2**31):
        # TensorFlow would wrap it.
        raise ValueError(f"{shorten(value, 50)} is not a 32-bit integer")
    return value


def _run(model, signature, inputs):
    import tensorflow as tf

    try:
        return model(signature, **inputs)
    except tf.errors.InvalidArgumentError as error:
        # The position in the graph comes first, then the graph's own message.
        lines = [line for line in error.message.splitlines() if line.strip()]
        causes = [line for line in lines if "must be" in line or "not in" in line]
        reason = (causes or lines or [""])[-1][:300]
        raise RequestError(f"the model refused the input: {reason}") from None
