"""FLOPs of distillation, from shapes."""

from official_bert.objectives import parse_spec


def soft_targets(bert, options, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of the student's scores that the teacher's are compared with."""
    return bert.head_flops(rows * (length if options.get("every_token", True) else masked))


def teacher_step_flops(teacher, objectives, rows: int, length: int, masked: int) -> float:
    """Return the FLOPs of a teacher (a BertConfig) in one step: a forward pass, never a backward
    one; arguments as for `flops.pretraining_step_flops`."""
    written = map(parse_spec, objectives)
    scores = [soft_targets(teacher, options, rows, length, masked)
              for name, options in written if name == "soft_targets"]  # fmt: skip
    return teacher.encoder_flops(rows, length) + sum(scores)
