"""The architecture's promises: imports run one way, and light parts stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["official_bert", "data_prep", "experiments"]


@pytest.mark.parametrize("package", ORDER)
def test_imports_run_one_way(package):
    forbidden = set(ORDER[ORDER.index(package) + 1 :])
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] not in forbidden, f"{path}:{node.lineno} imports {name}"


def modules_after(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import official_bert",
        "from official_bert import BertConfig, named_config, UserError",
        "from official_bert import BertTokenizer",
    ],
)
def test_light_imports_load_neither_keras_nor_tensorflow(statement):
    assert not modules_after(statement) & {"keras", "tensorflow", "torch", "jax"}


def test_works_where_tensorflow_is_missing():
    pytest.importorskip("jax", reason="needs a backend other than TensorFlow")
    block = "sys.modules['tensorflow'] = None; import os; os.environ['KERAS_BACKEND'] = 'jax'"
    use = (
        "from official_bert import BertEncoder, BertPretrainer, BertClassifier, BertAdamW, "
        "BertConfig; c = BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, "
        "num_attention_heads=1, intermediate_size=8); BertClassifier(BertEncoder(c), 2); "
        "BertPretrainer(c); BertAdamW()"
    )
    modules_after(f"{block}; {use}")
