"""Publishes a model on the Hugging Face hub, where transformers and official_bert load it by name.

    python -m experiments.publish --model=runs/mine/model --name=OWNER/NAME --dry_run
    python -m experiments.publish --model=runs/mine/model --name=OWNER/NAME

The model goes up in the format of transformers, with a card of what the model folder knows: its
data, scores and licence. Nothing else of the folder goes up. The repository is private unless
--public is given. The token is that of `hf auth login`, or HF_TOKEN.
"""

import tempfile
from pathlib import Path

from data_prep.jobs import command_flags, commands
from official_bert.backend import tensorflow_start
from official_bert.checkpoints.finding import hub
from official_bert.common.errors import UserError, first_line


def publish(
    model: str, name: str, public: bool = False, update: bool = False, dry_run: bool = False
) -> None:
    """Write a model as transformers reads it, and upload it.

    Args:
      model: a model folder, or any model that `official_bert.load` opens.
      name: OWNER/NAME on the hub, or the name alone under the token's owner.
      public: let everybody see a new repository.
      update: add a commit to a repository that exists, whose visibility stays.
      dry_run: list what would go up, and send nothing.

    Raises:
      UserError: there is no token, the hub refuses it or cannot be reached, the repository exists
        and `update` is false, or transformers has no place for the model.
    """
    import huggingface_hub as library

    if not (parts := hub.parts_of(name)) or parts[1] or name.startswith("hf://"):
        raise UserError(f"--name={name}: expected OWNER/NAME, as in somebody/my-bert")
    has_token = library.get_token() is not None
    if not has_token and not dry_run:
        raise UserError(
            "no token of the Hugging Face hub: log in with `hf auth login`, or set HF_TOKEN to a "
            "token that may write; --dry_run needs none"
        )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "model")
        for note in _write(model, folder):
            print(f"note: {note}")
        print(_listed(folder))
        if dry_run:
            whose = "private" if not public else "public"
            print(f"nothing was sent; these files would go to {name}, {whose} if it is new")
            print("" if has_token else "a token is missing: `hf auth login`, or HF_TOKEN\n", end="")
        else:
            print(_upload(folder, name, public, update))


def _write(model: str, folder: Path) -> list[str]:
    """Write the files that go up; return remarks on what they cannot hold."""
    from official_bert.checkpoints.finding import resolve
    from official_bert.checkpoints.hugging_face import model_card

    tensorflow_start.import_tensorflow()
    loaded = resolve.load(model)
    settings = {**loaded.settings, **model_card.settings_of(resolve.find(model))}
    notes = resolve.EXPORTERS["huggingface"](folder, loaded.model, loaded.tokenizer, settings)
    if "license" not in settings:
        notes = [*notes, "no licence is known; name one in the head of the model's README.md"]
    return notes


def _listed(folder: Path) -> str:
    files = sorted(folder.iterdir())
    return "\n".join(f"  {path.stat().st_size:>13,} bytes  {path.name}" for path in files)


def _upload(folder: Path, name: str, public: bool, update: bool) -> str:
    """Upload the files; return the address of the commit."""
    import huggingface_hub as library
    from huggingface_hub import constants

    api, begun = library.HfApi(), False
    try:
        hub.check_network(constants.ENDPOINT)
        if "/" not in name:
            name = f"{api.whoami()['name']}/{name}"
        is_there = api.repo_exists(name)
        if is_there and not update:
            raise UserError(
                f"{name} exists at {constants.ENDPOINT}; choose another --name, or add a commit to "
                "it with --update"
            )
        if not is_there:
            api.create_repo(name, private=not public)
            begun = True
        message = "Upload by official-bert"
        done = api.upload_folder(folder_path=folder, repo_id=name, commit_message=message)
    except UserError:
        raise
    except Exception as error:  # of the network, or of the hub
        what = "an empty repository was made; --update goes on" if begun else "nothing was sent"
        raise UserError(f"{name} at {constants.ENDPOINT}: {first_line(error)}; {what}") from error
    return f"{name}: {done.commit_url}"


def main(_) -> None:
    publish(**command_flags.values(publish))


def _define_flags():
    command_flags.define(publish)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
