"""Models of the Hugging Face hub: found by name, downloaded once, read without a network later.

`huggingface_hub` downloads and keeps them; its variables decide where and as whom (HF_HOME,
HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE). Only the files that are read here are fetched, weights last,
so that a download which broke off is never taken for a model.
"""

import functools
import re
import socket
import threading
import urllib.parse
import urllib.request
import warnings
from collections.abc import Collection
from pathlib import Path

from official_bert.common.errors import UserError, first_line, first_of
from official_bert.common.json_files import field, read_json, shorten
from official_bert.common.paths import inside

_NAME = re.compile(r"(?:hf://)?((?:\w[\w.-]*/)?\w[\w.-]*)(?:@([^@\s]+))?", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}")
_SECONDS_TO_CONNECT = 1.2  # a user without a network learns it within two seconds

_MODULES = "modules.json"
_WEIGHTED = ("Transformer", "Dense")  # modules that have weights
_ALONE = {"": "Transformer"}  # folder -> module, where there is no modules.json
_CONFIGS = ("config.json", "bert_config.json", "model.json", _MODULES)
_SMALL = re.compile(
    r"config\.json|bert_config\.json|model\.json|metadata\.json|preprocessor\.json|modules\.json"
    r"|config_sentence_transformers\.json|sentence_\w+_config\.json|special_tokens_map\.json"
    r"|tokenizer\.json|tokenizer_config\.json|added_tokens\.json|vocab\.json|merges\.txt|vocab\.txt"
    r"|spiece\.model|assets/tokenizer/[\w.]+|[^/]+\.index"
)
# The first of these that is there, with all of its shards.
_WEIGHTS = (
    r"weights\.safetensors",
    r"model\.safetensors",
    r"model\.safetensors\.index\.json|model-\d+-of-\d+\.safetensors",
    r"model\.weights\.h5",
    r"[^/]+\.data-\d+-of-\d+",
)
_PICKLES = (r"pytorch_model\.bin", r"pytorch_model\.bin\.index\.json|pytorch_model-[^/]+\.bin")


class Absent(UserError):
    """The hub has no model with a name, or it cannot be asked and no copy is here."""


def parts_of(model: str) -> tuple[str, str | None] | None:
    """Return (NAME, REVISION or None) of "[hf://][OWNER/]NAME[@REVISION]"; None for other texts."""
    found = _NAME.fullmatch(model)
    return found and (found[1], found[2])


@functools.cache
def download(name: str, revision: str | None = None, pickle: bool = False) -> Path:
    """Return the folder with the files of a model, downloaded where they are not kept already.

    Args:
      name: "OWNER/NAME", or the name alone of a model without an owner.
      revision: branch, tag or commit; None for the main branch.
      pickle: whether `pytorch_model.bin` is taken where there are no other weights.

    Raises:
      Absent: there is no such model, or no network and no copy.
      UserError: there is no such revision, or it has no weights that are read here.
    """
    import huggingface_hub as library
    from huggingface_hub import constants, errors

    address = constants.ENDPOINT
    try:
        if revision and _COMMIT.fullmatch(revision) and (kept := _kept(name, revision, pickle)):
            return kept
        if not constants.HF_HUB_OFFLINE:
            check_network(address)
        info = library.HfApi().model_info(name, revision=revision)
        commit, present = info.sha, {file.rfilename for file in info.siblings or ()}
    except errors.GatedRepoError:
        raise UserError(
            f"{name}: its owner at {address} asks for consent first; give it there, and log in "
            "with `hf auth login`"
        ) from None
    except errors.RepositoryNotFoundError:
        raise Absent(f"no model of {address} (or a private one: `hf auth login`)") from None
    except errors.RevisionNotFoundError:
        raise UserError(f"{name}: no revision {revision} at {address}") from None
    except errors.HFValidationError:
        raise Absent(f"no name that a model of {address} can have") from None
    except Exception as error:  # of the network, of the hub, or something that is not a hub
        failure = f"{address} cannot be asked ({first_line(error)})"
        if kept := _kept(name, revision, pickle):
            warnings.warn(f"{name}: {failure}; the copy in {kept} is read", stacklevel=2)
            return kept
        raise Absent(f"no model downloaded before, and {failure}") from None

    def fetch(file: str, at: str | None = commit) -> Path:
        try:
            return Path(library.hf_hub_download(name, file, revision=at))
        except Exception as error:
            raise UserError(f"{name}: {file} was not downloaded ({first_line(error)})") from error

    # The names of all files come first, so that a model that cannot be read costs no download.
    folders = _folders(fetch(_MODULES)) if _MODULES in present else _ALONE
    small, weights = _wanted(name, present, folders, pickle)
    for file in (*small, *weights):
        folder = _root(fetch(file), file)
    # The library notes the commit of a branch only when it is asked by the branch's name.
    fetch(small[0], revision)
    return folder


def _wanted(
    name: str, present: Collection[str], folders: Collection[str], pickle: bool
) -> tuple[list[str], list[str]]:
    """Return the files of a model that are read: (small files, weights)."""
    small: list[str] = []
    weights: list[str] = []
    refused: list[str] = []
    for folder in folders:
        start = f"{folder}/" if folder else ""
        here = sorted(p.removeprefix(start) for p in present if p.startswith(start))
        small += [start + file for file in here if _SMALL.fullmatch(file)]
        for kind in (*_WEIGHTS, *_PICKLES):
            if found := [start + file for file in here if re.fullmatch(kind, file)]:
                (weights if pickle or kind in _WEIGHTS else refused).extend(found)
                break
    if refused:
        raise UserError(
            f"{name}: its weights are there as a pickle alone ({refused[0]}), which can hold "
            f"harmful code; load(..., pickle=True), or `python -m experiments.convert "
            f"--input={name} --pickle --output=FOLDER`, reads it in a guarded process"
        )
    if not small or not weights:
        some = first_of(sorted(present), 8) or "none"
        raise UserError(f"{name}: no model that is read here; its files: {shorten(some, 200)}")
    return small, weights


def _kept(name: str, revision: str | None, pickle: bool) -> Path | None:
    """Return the folder of a complete earlier download, by any program; None where there is
    none."""
    from huggingface_hub import try_to_load_from_cache

    files = ((c, try_to_load_from_cache(name, c, revision=revision)) for c in _CONFIGS)
    found = next((_root(Path(path), file) for file, path in files if isinstance(path, str)), None)
    if found is None:
        return None
    present = {str(p.relative_to(found)) for p in found.rglob("*") if p.is_file()}
    modules = found / _MODULES
    try:
        folders = _folders(modules) if modules.is_file() else _ALONE
        _, weights = _wanted(name, present, folders, pickle)
    except UserError:
        return None
    with_weights = {file.rpartition("/")[0] for file in weights}
    if not with_weights.issuperset(f for f, kind in folders.items() if kind in _WEIGHTED):
        return None
    shards = [re.search(r"-of-(\d+)", file) for file in weights]
    counts = {int(shard[1]) for shard in shards if shard}
    return None if counts and sum(map(bool, shards)) != sum(counts) else found


def _folders(modules: Path) -> dict[str, str]:
    """Return {folder: class of its module} of `modules.json`, the root first."""
    found = {"": ""}
    for module in read_json(modules, list):
        if isinstance(module, dict):
            path = field(module, "path", str, modules)
            if path:
                inside(modules.parent, path, modules)
            found[path] = str(module.get("type")).rpartition(".")[2]
    return found


def _root(path: Path, file: str) -> Path:
    return path.parents[file.count("/")]


def check_network(address: str) -> None:
    """Raise OSError where an address, or its proxy, does not answer within a short time.

    Looking up a host name has no time limit, so it runs in a thread of its own.
    """
    url = urllib.parse.urlsplit(address)
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy and not urllib.request.proxy_bypass(url.netloc):
        url = urllib.parse.urlsplit(proxy if "://" in proxy else f"//{proxy}")
    port = url.port or (80 if url.scheme == "http" else 443)
    result: list[OSError | None] = []

    def connect():
        try:
            socket.create_connection((url.hostname, port), _SECONDS_TO_CONNECT).close()
            result.append(None)
        except OSError as error:
            result.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_CONNECT)
    if error := (result or [TimeoutError("no answer")])[0]:
        raise error
