"""Checks of a teacher before TensorFlow is loaded."""

from experiments.training.start import kept_head
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError
from official_bert.family import teacher_fit
from official_bert.objectives import needs_teacher, parts
from official_bert.window_pooling import OF_TOKENS


def pretraining(config, bert, tokenizer, theirs):
    """Checks the teacher of a PretrainConfig.

    Args:
      config: PretrainConfig.
      bert, tokenizer: the student's; None where they are not known yet.
      theirs: (BertConfig, Tokenizer) of the teacher, each None where it is not known yet.

    Raises:
      UserError: a teacher is missing, is not asked for, or does not fit the student.
    """
    names = [parts(written)[0] for written in config.objectives]
    learning = [name for name in names if needs_teacher(name)]
    if not config.teacher:
        if learning or config.teacher_layers:
            what = f"objective {learning[0]}" if learning else "teacher_layers"
            raise UserError(f"{what}: there is no teacher; give a model with --config.teacher=")
        return
    if not learning:
        raise UserError(
            f"--config.teacher={config.teacher}: no objective learns from it; add soft_targets, "
            "cosine_states or transformer_layers to --config.objectives, as --config=distil does"
        )
    if config.teacher_layers and config.init_from:
        raise UserError("a model begins with init_from or with teacher_layers, not with both")
    same_vocabulary(config.teacher, tokenizer, theirs[1])
    teacher = theirs[0]
    if not (bert and teacher):
        return
    try:
        for name in learning:
            teacher_fit.check(name, bert, teacher)
    except UserError as error:
        raise UserError(f"--config.teacher={config.teacher}: {error}") from None
    longest = max(phase.max_seq_length for phase in config.phases)
    _check_length(config.teacher, longest, teacher)
    if config.teacher_layers:
        layers = bert.num_hidden_layers, teacher.num_hidden_layers
        try:
            teacher_fit.chosen_layers(config.teacher_layers, *layers)
        except UserError as error:
            message = f"--config.teacher_layers={config.teacher_layers}: {error}"
            raise UserError(message) from None


def finetuning(config, task, tokenizer, theirs):
    """Checks the teacher of a FinetuneConfig.

    Args:
      config: FinetuneConfig, with a teacher.
      task: of `get_task`.
      tokenizer, theirs: as for `pretraining`.

    Raises:
      UserError: the teacher does not fit task or student.
    """
    if config.features:
        raise UserError("--config.teacher is for fine-tuning; with features the encoder is frozen")
    same_vocabulary(config.teacher, tokenizer, theirs[1])
    if theirs[0]:
        _check_length(config.teacher, config.max_seq_length, theirs[0])
    if model_folder.is_model_folder(config.teacher):
        same_head(config.teacher, model_folder.read_settings(config.teacher), task)


def same_head(path, settings, task):
    """Raises UserError unless a teacher (settings of its model.json) answers the task."""
    head = {**task.head, **{name: settings.get(name) for name in OF_TOKENS}}
    why_not = kept_head.difference(settings, head, bool(settings.get("bilstm")))
    if why_not:
        raise UserError(
            f"--config.teacher={path}: it must be fine-tuned for this task first: {why_not}"
        )


def same_vocabulary(path, ours, theirs):
    """Raises UserError where student and teacher would read different ids."""
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


def _check_length(path, length, teacher):
    if length > teacher.max_position_embeddings:
        raise UserError(
            f"--config.teacher={path}: it has positions for {teacher.max_position_embeddings} "
            f"tokens, the rows have {length}"
        )
