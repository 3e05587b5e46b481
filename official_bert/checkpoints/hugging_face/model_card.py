"""The model card of a folder for the Hugging Face hub: README.md with the hub's fields at its head.

It says only what the model folder says; where that has no licence, the card says so.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from official_bert.common.markdown import markdown_table, plain
from official_bert.config import BertConfig

FILE = "README.md"
# End of the name of a class of transformers -> the hub's name of its task.
_PIPELINES = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMultipleChoice": "multiple-choice",
    "ForPreTraining": "fill-mask",
    "ForMaskedLM": "fill-mask",
    "LMHeadModel": "text-generation",
}

_NO_LICENCE = "No file of the model names one in its fields; the data may have their own."


def text(config: BertConfig, kind: str, architecture: str, settings: dict, notes: Sequence[str]):
    """Return the card as Markdown.

    Args:
      config: of the encoder.
      kind: "bert", "roberta" and so on, as transformers calls it.
      architecture: the class of transformers.
      settings: fields of `model.json`; of them "task", "fine_tuning", "labels", "max_seq_length"
        and "license" are told, and "readme", what the model folder's own README.md says.
      notes: what the folder leaves out.
    """
    ends = (name for end, name in _PIPELINES.items() if architecture.endswith(end))
    head = {"library_name": "transformers", "pipeline_tag": next(ends, "feature-extraction")}
    if "license" in settings:
        head["license"] = json.dumps(settings["license"])  # quoted, as YAML reads it too
    fields = "".join(f"{name}: {value}\n" for name, value in head.items())
    parts = [
        f"---\n{fields}tags:\n- {kind}\n---",
        f"# {architecture}",
        f"{config.num_hidden_layers} layers, {config.hidden_size} wide, "
        f"{config.num_attention_heads} heads, {config.vocab_size:,} pieces, "
        f"{config.max_position_embeddings} positions. Written by official-bert; "
        f"`transformers.{architecture}.from_pretrained` and `official_bert.load` open this folder.",
        _data(settings),
        _scores(settings.get("fine_tuning") or {}),
        "## Licence",
        str(settings.get("license") or _NO_LICENCE),
    ]
    if notes:
        parts += ["## Not in this folder", "\n".join(f"- {note}" for note in notes)]
    if "readme" in settings:
        parts += ["## From the model folder's README.md", settings["readme"].strip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def settings_of(folder: Path | str) -> dict[str, str]:
    """Read the settings in the README.md of a folder: "readme", and "license" of its head."""
    path = Path(folder, FILE)
    if not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8", errors="replace")
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    found = {"readme": text[head.end() :] if head else text}
    licence = re.search(r"^license: *[\"']?([\w.+-]+)", head[1], re.MULTILINE) if head else None
    return found | ({"license": licence[1]} if licence else {})


def _data(settings: dict) -> str:
    task = settings.get("task") or {}
    lines = [f"Task: {task['name']}, as official-bert calls it"] if task.get("name") else []
    options = task.get("options")
    told = options.items() if isinstance(options, dict) else ()
    lines += [f"{name}: {value}" for name, value in told if value and name != "labels"]
    if labels := settings.get("labels"):
        lines.append(f"labels: {', '.join(map(str, labels))}")
    if length := settings.get("max_seq_length"):
        lines.append(f"longest text in training: {length} tokens")
    for split in ("train", "dev"):
        if count := _numbers(settings.get("fine_tuning")).get(f"{split}_examples"):
            lines.append(f"{split} examples: {count:,}")
    bullets = "\n".join(f"- {plain(line)}" for line in lines)
    return f"## Data\n\n{bullets or 'The model folder does not name them.'}"


def _scores(results: dict) -> str:
    scores, trivial = _numbers(results.get("dev")), _numbers(results.get("baseline"))
    if not scores:
        return ""
    rows = [
        [name, f"{value:.4f}", f"{trivial[name]:.4f}" if name in trivial else ""]
        for name, value in scores.items()
    ]
    table = markdown_table([["on dev", "this model", "trivial baseline"], *rows])
    return "\n".join(["## Scores\n", *table])


def _numbers(fields: Any) -> dict[str, Any]:
    """Return the fields that are numbers, since `model.json` may come from a stranger."""
    found = fields.items() if isinstance(fields, dict) else ()
    return {name: value for name, value in found if isinstance(value, int | float)}
