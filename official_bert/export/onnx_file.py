"""ONNX files of models, and ONNX Runtime's answers."""

from pathlib import Path

from official_bert.common.files import atomic_write

FILE = "model.onnx"
_MOST_BYTES = 2**31 - 1  # of a protocol buffer


def write(path: Path, answers) -> None:
    """Writes `Answers` as `path`.

    Raises:
      UserError: it is larger than an ONNX file can be.
    """
    from official_bert.common.errors import UserError
    from official_bert.export import onnx_heads

    model = onnx_heads.build(answers, int8=answers.settings.precision == "int8")
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size > _MOST_BYTES:
        raise UserError(
            f"the model has {size / 1e9:.1f} GB of weights, an ONNX file 2.1 at most; "
            "--precision=int8 takes a quarter"
        )
    with atomic_write(path, "wb") as file:
        file.write(model.SerializeToString())


def run(path: Path, batch: dict) -> dict:
    """ONNX Runtime's answer to a batch: {output: array}."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, batch), strict=True))
