"""RoBERTa, ALBERT, DistilBERT, ELECTRA and GPT told in Hugging Face's names: what exports write.

The names themselves are in `huggingface_family` and `huggingface_gpt`, which read them.
"""

import numpy as np

from official_bert.checkpoints import huggingface_family, huggingface_gpt
from official_bert.checkpoints.huggingface_family import POSITIONS
from official_bert.common.errors import UserError
from official_bert.config import BertConfig
from official_bert.objectives import parts

MEMBERS = {**huggingface_family.MEMBERS, "openai-gpt": huggingface_gpt.GPT}
# Head -> how the classes that have it end. Those of pre-training depend on the objectives.
_CLASSES = {
    "none": "Model",
    "classification": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "span": "ForQuestionAnswering",
    "multiple_choice": "ForMultipleChoice",
}
_OF_DISTILBERT = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}


def kind_of(config: BertConfig, has_word_pieces: bool) -> str:
    """The model_type of what is exported: "bert", or a key of `MEMBERS`.

    RoBERTa's encoder is BERT's with one segment; it goes out as RoBERTa unless its tokeniser is
    BERT's.
    """
    if not (config.embedding_norm and config.prediction_transform):
        return "openai-gpt"
    if config.num_hidden_groups:
        return "albert"
    if not config.type_vocab_size:
        return "distilbert"
    if config.embedding_size or config.pooler_activation != "tanh":
        return "electra"
    is_roberta = config.type_vocab_size == 1 and not has_word_pieces
    return "roberta" if is_roberta and config.attention_direction == "bidirectional" else "bert"


def architecture(kind: str, head: str, settings: dict, config: BertConfig) -> str:
    """The class of `transformers` that computes what the model does.

    Args:
      kind: a key of `MEMBERS`.
      head, settings: of `model_folder.describe`.

    Raises:
      UserError: there is none.
    """
    member = MEMBERS[kind]
    if kind == "openai-gpt" and head not in ("none", "pretraining"):
        raise UserError(
            f"transformers has no OpenAI GPT with a {head} like this: its own has no bias; export "
            "the encoder alone"
        )
    needed = (
        huggingface_gpt.needed(config) if kind == "openai-gpt" else _needed(kind, head, settings)
    )
    wrong = [name for name, value in needed.items() if getattr(config, name) != value]
    if kind == "albert" and not config.embedding_size:
        wrong.append("embedding_size")
    if kind == "electra" and config.embedding_size == config.hidden_size:
        wrong.append("embedding_size")
    ends_in_dense = head in ("classification", "multiple_choice")
    has_dense = member.dense == "tanh" or ends_in_dense
    if config.pooler_activation != (member.dense if has_dense else "none"):
        wrong.append("pooler_activation")
    if wrong:
        values = ", ".join(f"{name} {getattr(config, name)!r}" for name in wrong)
        export = "export the encoder alone, or keep" if head != "none" else "keep"
        raise UserError(
            f"transformers has no {member.classes} that computes this {head} model: its {values} "
            f"is not what that has; {export} the model folder"
        )
    return member.classes + (_CLASSES.get(head) or _of_pretraining(kind, settings))


def tensors(kind: str, head: str, found: dict[str, np.ndarray], class_name: str):
    """The tensors of an export and the names of those that the class has no place for.

    Args:
      found: by BERT's names.
      class_name: of `architecture`.
    """
    member = MEMBERS[kind]
    absent = ["cls.seq_relationship."]
    if not class_name.endswith("ForPreTraining"):
        absent.append("sop_classifier.")
    if class_name.endswith(("MaskedLM", "TokenClassification", "QuestionAnswering")):
        absent.append("bert.pooler.")
    left_out = [name for name in found if name.startswith(tuple(absent))]
    found = {name: array for name, array in found.items() if name not in left_out}
    if kind == "openai-gpt":
        prefix = "" if head == "none" else f"{member.prefix}."
        return huggingface_gpt.own_tensors(found, prefix), left_out
    written = {}
    for name, array in found.items():
        if name == POSITIONS and member.unused_positions:
            unused = np.zeros((member.unused_positions, array.shape[1]), array.dtype)
            array = np.concatenate([unused, array])
        own = member.own_name(name, head)
        written[own.removeprefix(f"{member.prefix}.") if head == "none" else own] = array
    return written, left_out


def their_config(kind: str, fields: dict, config: BertConfig) -> dict:
    """A config.json of the family from what it would be for BERT."""
    fields = {**fields, "model_type": kind}
    match kind:
        case "roberta":
            unused = MEMBERS[kind].unused_positions
            fields["max_position_embeddings"] += unused
            fields |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
        case "albert":
            fields |= {
                "embedding_size": config.embedding_size,
                "num_hidden_groups": config.num_hidden_groups,
                "inner_group_num": 1,
                "classifier_dropout_prob": config.hidden_dropout_prob,
            }
        case "distilbert":
            fields = {_OF_DISTILBERT.get(name, name): value for name, value in fields.items()}
            del fields["type_vocab_size"], fields["layer_norm_eps"]
            dropout = config.hidden_dropout_prob
            fields |= {"seq_classif_dropout": dropout, "qa_dropout": dropout}
            fields["sinusoidal_pos_embds"] = False
        case "electra":
            fields["embedding_size"] = config.embedding_width
            fields |= {"summary_activation": "gelu", "summary_use_proj": True}
        case "openai-gpt":
            fields = huggingface_gpt.their_config(fields, config)
    return fields


def _needed(kind: str, head: str, settings: dict) -> dict:
    """Fields that a family has with one value only."""
    needed = {"attention_direction": "bidirectional"}
    if kind == "distilbert":
        needed |= {"embedding_size": 0, "layer_norm_eps": 1e-12}
    # The masked-LM head of these two has its own activation, whatever hidden_act says.
    if kind in ("roberta", "electra") and "masked_lm" in _objectives(head, settings):
        needed |= {"hidden_act": "gelu", "gelu_form": "erf"}
    return needed


def _objectives(head: str, settings: dict) -> list[str]:
    if head != "pretraining":
        return []
    return [parts(written)[0] for written in settings["objectives"]]


def _of_pretraining(kind: str, settings: dict) -> str:
    names = _objectives("pretraining", settings)
    if kind == "electra" and "replaced_token" in names:
        return "ForPreTraining"
    if kind == "openai-gpt" and names == ["next_token"]:
        return "LMHeadModel"
    if "masked_lm" in names:
        of_order = kind == "albert" and "sentence_order" in names
        return "ForPreTraining" if of_order else "ForMaskedLM"
    raise UserError(
        f"transformers has no {MEMBERS[kind].classes} with the heads of {', '.join(names)}; "
        "export the encoder alone"
    )
