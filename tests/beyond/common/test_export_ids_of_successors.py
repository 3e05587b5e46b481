"""ONNX and LiteRT files of successors' encoders answer ids as the models do."""

import numpy as np
import pytest

import official_bert as ob
from tests.official_bert import test_export_ids as ids
from tests.official_bert.test_export_ids import litert_file as litert_file
from tests.official_bert.test_export_ids import onnx_file as onnx_file

FAMILY = {  # as its members differ from BERT
    "albert": {"embedding_size": 8, "num_hidden_groups": 1, "hidden_act": "relu"},
    "distilbert": {"type_vocab_size": 0, "pooler_activation": "none"},
    "electra": {"embedding_size": 8, "pooler_activation": "gelu"},
}


@pytest.mark.parametrize("member", FAMILY)
def test_onnx(onnx_file, tmp_path, member):
    model = ob.BertClassifier(ids.make_encoder(**FAMILY[member]), 3, seed=1)
    batch, answer = ids.ask(onnx_file, tmp_path, model)
    ids.close(answer["probabilities"], ids.softmax(model(batch)["logits"]))


def test_litert_of_shared_blocks(litert_file, tmp_path):
    model = ob.BertClassifier(ids.make_encoder(**FAMILY["albert"]), 3, seed=1)
    batch, answer = ids.ask(litert_file, tmp_path, model)
    shares = ids.softmax(np.asarray(model(batch)["logits"]))
    ids.close(answer["probabilities"], shares, atol=1e-4)
