"""The fit of a teacher and a run; without Keras."""

from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.options import names_for
from experiments.training.start import reuse_head
from official_bert.common.errors import UserError


def same_head(path, settings, head):
    """Raise UserError unless a teacher (settings of its model.json) answers the task."""
    settings = settings or {}
    head, bilstm = as_fine_tuned(settings, head), bool(settings.get("bilstm"))
    why_not = reuse_head.difference(settings, head, bilstm)
    if why_not:
        raise UserError(
            f"--config.teacher={path}: it must be fine-tuned for this task first: {why_not}"
        )


def as_fine_tuned(settings, head) -> dict:
    """Return the description of a teacher's head: a task's, with the options of its settings."""
    options = {*names_for(FinetuneConfig), "mean_pooling"}
    own = {name: value for name, value in settings.items() if name in options}
    return {**{name: value for name, value in head.items() if name not in options}, **own}


def same_vocabulary(path, ours, theirs):
    """Raise UserError where student and teacher would read different ids."""
    if not (ours and theirs):
        return
    if ours.vocab != theirs.vocab:
        raise UserError(
            f"--config.teacher={path}: its vocabulary ({len(theirs.vocab)} entries) is not the "
            f"student's ({len(ours.vocab)} entries); a student reads what its teacher reads"
        )
    # Tokenisers of two kinds may be the same, BERT's own and one of a Hugging Face folder.
    text = " ".join(piece for piece in ours.readable if piece not in ours.special)
    same_kind = ours.kind == theirs.kind
    if ours.digest() != theirs.digest() if same_kind else ours.encode(text) != theirs.encode(text):
        told = [f"{one.kind} {one.options}" for one in (theirs, ours)]
        raise UserError(
            f"--config.teacher={path}: its tokeniser is {told[0]}, the student's {told[1]}, or "
            "their merges or scores differ"
        )


def check_length(path, length, teacher):
    """Raise UserError where a teacher (a BertConfig) has too few positions."""
    if length > teacher.max_position_embeddings:
        raise UserError(
            f"--config.teacher={path}: it has positions for {teacher.max_position_embeddings} "
            f"tokens, the rows have {length}"
        )
