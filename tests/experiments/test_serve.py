"""The local server: TensorFlow Serving's REST format, wrong requests, other sites, its end."""

import base64
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tiny
import waitress.task
from in_process import call

import official_bert
from experiments import serve
from experiments.serving.rest import create_app
from official_bert import BertClassifier, BertConfig, BertPretrainer, BertTokenizer
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.export import export, load

ROOT = Path(__file__).parents[2]
VOCAB = [*tiny.SPECIAL, "free", "prize", "see", "you", "soon"]
PREDICT = "/v1/models/spam:predict"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = BertClassifier(tiny.encoder(VOCAB), 2, seed=0)
    folder = tmp_path_factory.mktemp("serve")
    settings = {"labels": ["ham", "spam"], "max_seq_length": 16}
    official_bert.save(folder / "model", model, BertTokenizer(VOCAB), settings)
    return export(folder / "model", folder / "spam")


@pytest.fixture(scope="module")
def model(exported):
    return load(exported)


@pytest.fixture
def client(model):
    return create_app(model, "spam", "<p>page</p>", max_bytes=20_000, max_texts=8).test_client()


def test_predictions_in_rows_and_columns(client, model):
    texts = ["free prize", "see you soon", "?"]
    expected = model(text=texts)
    rows = client.post(PREDICT, json={"instances": texts}).get_json()["predictions"]
    named = client.post(PREDICT, json={"instances": [{"text": text} for text in texts]})
    assert named.get_json()["predictions"] == rows
    assert [row["labels"] for row in rows] == expected["labels"]
    assert [row["truncated"] for row in rows] == [False, False, False]
    (long,) = client.post(PREDICT, json={"instances": ["free " * 90]}).get_json()["predictions"]
    assert long["truncated"] is True
    np.testing.assert_allclose([row["logits"] for row in rows], expected["logits"], atol=1e-5)
    for inputs in (texts, {"text": texts}):
        columns = client.post(PREDICT, json={"inputs": inputs}).get_json()["outputs"]
        assert columns["labels"] == expected["labels"]
    versioned = client.post("/v1/models/spam/versions/1:predict", json={"instances": texts})
    assert versioned.get_json()["predictions"] == rows


def test_a_look_inside(client, model):
    """The page draws the encoder's own attention and the masked-LM head's words."""
    assert client.get("/explain").get_json() == {"layers": 0, "heads": 0}
    assert client.post("/explain", json={"text": "free"}).status_code == 400
    config = BertConfig(len(VOCAB), 8, 1, 2, 16, max_position_embeddings=8)
    inside = BertPretrainer(config, seed=1)
    tokenizer = BertTokenizer(VOCAB)
    written = {"objectives": ["masked_lm"]}
    loaded = LoadedModel(config, inside.encoder, inside, "pretraining", tokenizer, written)
    client = create_app(model, "spam", "", loaded, max_bytes=200_000).test_client()
    assert client.get("/explain").get_json() == {"layers": 1, "heads": 2}
    seen = client.post("/explain", json={"text": "free [MASK]", "layer": 0}).get_json()
    assert seen["tokens"] == ["[CLS]", "free", "[MASK]", "[SEP]"]
    ids = np.array([[tokenizer.vocab.index(token) for token in seen["tokens"]]])
    expected = inside.encoder({"input_ids": ids}, return_attention=True)["attention_probabilities"]
    np.testing.assert_allclose(seen["attention"], expected[0][0], atol=6e-4)
    assert list(seen["candidates"]) == ["2"] and len(seen["candidates"]["2"]) == 5
    hidden = client.post("/explain", json={"text": "free prize", "mask": 1}).get_json()
    assert hidden["tokens"][1] == "[MASK]" and list(hidden["candidates"]) == ["1"]
    written["objectives"] = ["next_token"]  # scores are those of the word behind
    assert client.post("/explain", json={"text": "free", "mask": 1}).get_json()["candidates"] == {}
    for wrong in ({}, {"text": " "}, {"text": "a", "layer": 1}, {"text": "a", "mask": 99}, [1]):
        assert client.post("/explain", json=wrong).status_code == 400
    assert client.post("/explain", json={"text": "\ud800 free"}).status_code == 200
    for body in ("[" * 900, "[" * 100_000, "{", "\udcff", "1" * 9999):
        body = body.encode("utf-8", "surrogateescape")
        assert client.post("/explain", data=body).status_code == 400
    tokenizer.special = tokenizer.special._replace(mask=None)
    refused = client.post("/explain", json={"text": "free"})
    assert refused.status_code == 400 and "hides another" in refused.get_json()["error"]


def test_other_signatures_and_base64(client, model):
    ids = [[2, 5, 6, 3], [2, 9, 3, 0]]
    inputs = {"input_ids": ids, "input_mask": [[1, 1, 1, 1], [1, 1, 1, 0]]}
    inputs["segment_ids"] = [[0] * 4] * 2
    request = {"signature_name": "token_ids", "inputs": inputs}
    by_id = client.post(PREDICT, json=request).get_json()["outputs"]["logits"]
    encoded = [{"b64": base64.b64encode(text).decode()} for text in (b"free prize", b"soon")]
    by_text = client.post(PREDICT, json={"instances": encoded}).get_json()["predictions"]
    np.testing.assert_allclose(by_id, [row["logits"] for row in by_text], atol=1e-5)
    assert client.post(PREDICT, json={"instances": []}).get_json() == {"predictions": []}


def test_state_metadata_health_and_page(client):
    state = client.get("/v1/models/spam").get_json()["model_version_status"][0]
    assert (state["version"], state["state"]) == ("1", "AVAILABLE")
    metadata = client.get("/v1/models/spam/metadata").get_json()
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"
    assert set(signatures) == {"serving_default", "token_ids", "serving_examples"}
    assert client.get("/health").get_json() == {"status": "ok"}
    assert client.get("/").data == b"<p>page</p>"
    assert client.get("/model.json").get_json()["labels"] == ["ham", "spam"]


def _ids(status, message, **change):
    inputs = {"input_ids": [[2, 3]], "input_mask": [[1, 1]], "segment_ids": [[0, 0]], **change}
    return json.dumps({"signature_name": "token_ids", "inputs": inputs}).encode(), status, message


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "not valid JSON"),
        (b'{"instances": [', 400, "not valid JSON"),
        (b'{"instances": ["\xff\xfe"]}', 400, "not UTF-8: invalid start byte at byte 16"),
        (b"[" * 5000, 400, "nested too deeply"),
        (b'["text"]', 400, "must be a JSON object"),
        (b"{}", 400, 'either "instances" or "inputs"'),
        (b'{"instances": [], "inputs": []}', 400, 'either "instances" or "inputs"'),
        (b'{"instances": [], "colour": 1}', 400, "unknown field 'colour'"),
        (b'{"instances": "text"}', 400, "must be a list"),
        (b'{"instances": [3]}', 400, "text: "),
        (b'{"instances": [null]}', 400, "text: "),
        (b'{"instances": [["a"]]}', 400, "text has the shape (1, 1); it must be (None,)"),
        (b'{"instances": [[]]}', 400, "text has the shape (1, 0); it must be (None,)"),
        (b'{"instances": [{"b64": "???"}]}', 400, "base64"),
        (b'{"instances": [{"text": "a"}, "b"]}', 400, "instances[1] has other inputs"),
        (b'{"instances": [{"words": "a"}]}', 400, "the inputs are words; they must be text"),
        (b'{"instances": [{"b64": 3}]}', 400, "text: "),
        (b'{"inputs": {"text": "a"}}', 400, "text has the shape ()"),
        (b'{"instances": ["a"], "signature_name": "x"}', 400, "no signature 'x'"),
        (b'{"instances": ["a"], "signature_name": ["x"]}', 400, "no signature"),
        (b'{"instances": ["a"], "signature_name": "token_ids"}', 400, "by name"),
        (json.dumps({"instances": ["a"] * 9}).encode(), 413, "9 rows in text; at most 8"),
        (json.dumps({"instances": ["a"] * 100_000}).encode(), 413, "larger than 20,000 bytes"),
        (b'{"instances": ["' + b"a" * 10_000_000 + b'"]}', 413, "larger than 20,000 bytes"),
        _ids(400, "input_ids: true is not a 32-bit integer", input_ids=[[2, True]]),
        _ids(400, "input_ids: ", input_ids=[[2, 1.5]]),
        _ids(400, "2147483648 is not a 32-bit integer", input_ids=[[2, 2**31]]),
        _ids(400, "input_ids: ", input_ids=[[2, 2**99]]),
        _ids(400, "input_ids: ", input_ids=[[2, "a"]]),
        _ids(400, "input_ids has the shape (2,)", input_ids=[2, 3]),
        _ids(400, "input_ids: ", input_ids=[[2, 3], [2]]),
        _ids(400, "inputs of different length", input_ids=[[2, 3], [2, 3]]),
        _ids(400, "the model refused the input", input_ids=[[2, 3, 4]]),
        _ids(400, "the model refused the input: ", input_ids=[[2, 4000]]),
        _ids(400, "segment_ids: ", segment_ids=None),
    ],
)
def test_wrong_requests_are_told_why(client, body, status, message):
    answer = client.post(PREDICT, data=body)
    assert answer.status_code == status
    assert message in answer.get_json()["error"]
    assert client.post(PREDICT, json={"instances": ["free"]}).status_code == 200  # it goes on


def test_a_half_of_a_character_does_not_fail_the_others(client):
    rows = [rb'"free \ud800"', rb'"\udfff"', b'"free"']
    body = b'{"instances": [' + b", ".join(rows) + b"]}"
    first, second, third = client.post(PREDICT, data=body).get_json()["predictions"]
    assert first["logits"] == pytest.approx(third["logits"], abs=1e-5) and second["logits"]


def test_wrong_addresses_and_methods(client):
    missing = client.get("/v1/models/ham")
    assert missing.status_code == 404
    assert "/v1/models/spam" in missing.get_json()["error"]
    assert client.get(PREDICT).status_code == 405


@pytest.fixture
def server_process(exported):
    """Return the command, its address, and its model folder's own export."""
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.serve", f"--model={exported.parent}", "--port=0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert address, line + process.stderr.read()
    yield process, address.group()
    process.kill()
    process.wait()


def test_the_command_serves_many_clients_and_stops_when_told(server_process, model):
    process, address = server_process

    def ask(body):
        request = urllib.request.Request(address + PREDICT, body)
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    fine = json.dumps({"instances": ["free prize"]}).encode()
    expected = model(text=["free prize"])["labels"][0]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, [fine] * 200))
    assert {status for status, _ in answers} == {200}
    assert {reply["predictions"][0]["labels"] for _, reply in answers} == {expected}
    status, reply = ask(b'{"instances": ["' + b"a" * 10_000_000 + b'"]}')
    assert status == 413 and "larger than 1,000,000 bytes" in reply["error"]
    assert ask(fine)[0] == 200

    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output == "stopped\n"


def test_a_request_that_takes_long_is_answered_after_the_signal(monkeypatch):
    answers, go, asked = [], threading.Event(), itertools.count()

    def app(environ, start_response):
        os.kill(os.getpid(), signal.SIGTERM)
        go.wait()
        start_response("200 OK", [("Content-Length", "4")])
        return [b"fine"]

    def time():  # whoever waits for the requests to end looks at it, again and again
        if (looks := next(asked)) > 10:
            go.set()
        return 100 * looks

    monkeypatch.setattr(waitress.task, "time", types.SimpleNamespace(time=time))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    server = serve.make_server(app, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.effective_port}/"
    client = threading.Thread(target=lambda: answers.append(urllib.request.urlopen(address).read()))
    client.start()
    try:
        assert serve.run_until_signal(server, "serving") == 0
        assert go.is_set()
        client.join()
    finally:
        go.set()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        server.close()
    assert answers == [b"fine"]


def test_metadata_are_those_of_the_model_that_is_served(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "1")
    client = create_app(load(tmp_path / "1"), "spam", "").test_client()
    before = client.get("/v1/models/spam/metadata").get_json()
    shutil.rmtree(tmp_path / "1")
    assert client.get("/v1/models/spam/metadata").get_json() == before
    assert "serving_default" in before["metadata"]["signature_def"]["signature_def"]


def test_a_port_in_use_is_a_clear_error(client):
    server = serve.make_server(client.application, "127.0.0.1", 0)
    port = int(server.effective_port)
    try:
        with pytest.raises(official_bert.UserError, match=f"127.0.0.1:{port}"):
            serve.make_server(client.application, "127.0.0.1", port)
    finally:
        server.close()
    with pytest.raises(official_bert.UserError, match="--port=65536"):
        serve.make_server(client.application, "127.0.0.1", 1 << 16)
    with pytest.raises(official_bert.UserError, match="cannot listen at no such host:0: "):
        serve.make_server(client.application, "no such host", 0)
    with pytest.raises(official_bert.UserError, match="--host=::1: .* --allowed_hosts"):
        serve.serve("spam", host="::1")
    with pytest.raises(official_bert.UserError, match="--name=a<b>: an address has no <"):
        create_app(None, "a<b>", "")


def test_nothing_to_serve_is_a_clear_error(tmp_path, capsys):
    assert call(serve, f"--model={tmp_path}") == 2
    assert "no SavedModel; python -m experiments.export makes one" in capsys.readouterr().err


def test_the_right_status_at_every_depth_of_nesting(client):
    for depth in (*range(1, 80, 7), 200, 500, *range(880, 1001, 4), 3000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            nested = opening * depth + "1" + closing * depth
            for body in (nested, f'{{"instances": {nested}}}', f'{{"instances": [{nested}]}}'):
                answer = client.post(PREDICT, data=body)
                assert answer.status_code == 400, (depth, body[:30])
                assert answer.get_json()["error"]


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", None, 200),
        ("localhost:1", None, 200),
        ("spam.example:80", "http://spam.example:80", 200),
        ("localhost:8501", "http://localhost:8501", 200),
        ("localhost:8501", "http://localhost:3000", 403),
        ("localhost:8501", "http://evil.example", 403),
        ("localhost:8501", "null", 403),
        ("evil.example", None, 400),
        ("localhost.evil.example:8501", None, 400),
        ("localhost, evil.example", None, 400),  # two headers
        ("localhost/", None, 400),
        ("user@localhost", None, 400),
        ("", None, 400),
    ],
)
def test_pages_of_other_sites_are_refused(model, host, origin, status):
    app = create_app(model, "spam", "", hosts=("localhost", "Spam.Example"))
    headers = {"Host": host} | ({"Origin": origin} if origin else {})
    answer = app.test_client().post(PREDICT, json={"instances": ["free"]}, headers=headers)
    assert answer.status_code == status
    assert status == 200 or answer.get_json()["error"]
    anyone = create_app(model, "spam", "", hosts=("*",)).test_client()
    assert anyone.get("/health", headers={"Host": "evil.example"}).status_code == 200
