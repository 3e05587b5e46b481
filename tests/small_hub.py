"""A hub of models on this machine: the answers that `huggingface_hub` asks `HF_ENDPOINT` for."""

import base64
import contextlib
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Hub(ThreadingHTTPServer):
    """Serves models from memory.

    Attributes:
      models: {name: {revision: {file: bytes}}}; a revision's commit is the digest of its name.
      asked: "METHOD /path" of every request, in order.
      private: names of models that were made private.
      token: the token that may write.
    """

    token = "hf_of_this_test"

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models, self.asked, self.private = {}, [], set()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, name, folder, revision="main"):
        """Take a copy of a folder's files."""
        paths = [path for path in Path(folder).rglob("*") if path.is_file()]
        files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        self.models.setdefault(name, {})[revision] = files

    def downloads(self):
        """Return the files that were sent."""
        sent = (a.split("/resolve/")[1] for a in self.asked if "GET" in a[:3] and "/resolve/" in a)
        return sorted(path.split("/", 1)[1] for path in sent)


def commit_of(name, revision):
    return hashlib.sha1(f"{name} {revision}".encode()).hexdigest()


@contextlib.contextmanager
def small_hub():
    """Run a Hub that answers while the context lasts."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


@contextlib.contextmanager
def served(folder, monkeypatch):
    """Run a Hub that this process asks, with an empty cache in a folder."""
    from huggingface_hub import constants

    from official_bert.checkpoints.finding import hub

    with small_hub() as server:
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        hub.download.cache_clear()
        yield server
        hub.download.cache_clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0].replace("%2F", "/")
        for name, revisions in self.server.models.items():
            if path == f"/api/models/{name}" or path.startswith(f"/api/models/{name}/revision/"):
                return self._info(name, revisions, path.partition("/revision/")[2] or "main")
            if path.startswith(f"/{name}/resolve/"):
                revision, _, file = path.removeprefix(f"/{name}/resolve/").partition("/")
                return self._file(name, revisions, revision, file)
        if path == "/api/whoami-v2":
            return self._answer({"name": "some-one"})
        return self._refuse("RepoNotFound", 401)

    do_HEAD = do_GET

    def do_POST(self):
        self.server.asked.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        if self.headers["Authorization"] != f"Bearer {self.server.token}":
            return self._refuse("Unauthorized", 401)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.models[name] = {"main": {}}
            if asked["visibility"] == "private":
                self.server.private.add(name)
            return self._answer({"url": f"{self.server.address}/{name}"})
        path = self.path.partition("?")[0].removeprefix("/api/models/")
        name, _, job = path.removesuffix("/main").rpartition("/")
        files = self.server.models[name]["main"]
        if job == "preupload":
            asked = json.loads(body)["files"]
            how = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return self._answer({"files": [{"path": one["path"], **how} for one in asked]})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        commit = commit_of(name, "main")
        address = f"{self.server.address}/{name}/commit/{commit}"
        return self._answer({"success": True, "commitUrl": address, "commitOid": commit})

    def _answer(self, body):
        self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def log_message(self, *_):
        pass

    def _revision(self, name, revisions, wanted):
        return next((r for r in revisions if wanted in (r, commit_of(name, r))), None)

    def _info(self, name, revisions, wanted):
        revision = self._revision(name, revisions, wanted)
        if revision is None:
            return self._refuse("RevisionNotFound", 404)
        files = [{"rfilename": file} for file in revisions[revision]]
        self._answer({"id": name, "sha": commit_of(name, revision), "siblings": files})

    def _file(self, name, revisions, wanted, file):
        revision = self._revision(name, revisions, wanted)
        content = revisions.get(revision, {}).get(file)
        if content is None:
            return self._refuse("EntryNotFound", 404)
        etag = hashlib.sha256(content).hexdigest()
        self._send(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit_of(name, revision)})

    def _refuse(self, code, status):
        self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": code})

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
