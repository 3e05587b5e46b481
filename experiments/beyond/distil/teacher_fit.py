"""The fit of a teacher and a student, from their shapes; needs no Keras."""

from official_bert.common.errors import UserError
from official_bert.config import BertConfig


def check_fit(objective: str, student: BertConfig, teacher: BertConfig) -> None:
    """Raise UserError where an objective of distillation cannot compare two models."""
    same = {
        "soft_targets": "vocab_size",
        "cosine_states": "hidden_size",
        "transformer_layers": "num_attention_heads",
    }
    for name in (same[objective], "attention_direction"):
        values = getattr(student, name), getattr(teacher, name)
        if values[0] != values[1]:
            raise UserError(
                f"objective {objective}: {name} is {values[0]} in the student, {values[1]} in the "
                "teacher; it must be the same"
            )
    layers = student.num_hidden_layers, teacher.num_hidden_layers
    if objective == "transformer_layers" and layers[1] % layers[0]:
        raise UserError(
            f"objective transformer_layers: the student's {layers[0]} layers must divide the "
            f"teacher's {layers[1]}"
        )


def chosen_layers(written: str, student: int, teacher: int) -> list[int]:
    """Return layers of a teacher for a student to begin with, counted from 0.

    Args:
      written: "even": from the first to the last at equal distances, which is DistilBERT's choice
        for 6 of 12, 0, 2, 4, 7, 9, 11; or numbers with commas between.
      student, teacher: layers of each.

    Raises:
      UserError: other than one layer for each of the student's, or one that the teacher lacks.

    >>> chosen_layers("even", 6, 12)
    [0, 2, 4, 7, 9, 11]
    """
    if student > teacher:
        raise UserError(f"the student has {student} layers, its teacher only {teacher}")
    if written == "even":
        return [int(i * (teacher - 1) / max(1, student - 1) + 0.5) for i in range(student)]
    numbers = [number.strip() for number in written.split(",")]
    if not all(number.isdecimal() for number in numbers):
        raise UserError(f"{written!r} is neither even nor numbers with commas, as 0,2,4")
    layers = list(map(int, numbers))
    if len(layers) != student or max(layers) >= teacher:
        raise UserError(
            f"{written} names {len(layers)} layers; the student needs {student}, of the "
            f"teacher's 0 to {teacher - 1}"
        )
    return layers
