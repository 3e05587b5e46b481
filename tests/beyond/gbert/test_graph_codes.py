"""G-BERT's parts: the graph's numbers by hand, sets without order, answers that are not read."""

import numpy as np
import pytest
from keras import ops

from experiments.beyond.gbert import model as graph_codes
from official_bert import BertConfig

# [PAD], [CLS], [MASK], a root 3, its child 4, and leaves: 5 and 6 below 4, 7 alone.
PARENTS = [-1, -1, -1, -1, 3, 4, 4, -1]
CONFIG = BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=8, initializer_range=0.5)  # fmt: skip
SIZES = {"diagnoses": 2, "medications": 1}


def array(x):
    return ops.convert_to_numpy(x)


def test_the_graph_by_hand():
    one = BertConfig(vocab_size=8, hidden_size=1, num_attention_heads=1, intermediate_size=1)
    table = graph_codes.CodeTable(PARENTS, one, seed=0)
    for weight in (table.attention.kernel, table.attention.of_source, table.attention.of_target):
        weight.assign(np.ones(weight.shape))
    table.rows.assign(np.array([0, 0, 0, 1, 2, 3, 0, 5.0])[:, None])
    up = array(table.attention(table.rows.value, sources=table.up[0], targets=table.up[1]))[:, 0]
    # The root's scores are 1 + 1 and, of its child, 1 + 2; the child's 4, 5 and 2.
    np.testing.assert_allclose(up[3:], [1.731059, 2.635146, 3, 0, 5], rtol=1e-6)
    found = array(table())[:, 0]
    np.testing.assert_allclose(found[5:], [2.691179, 2.259263, 5], rtol=1e-6)
    assert graph_codes.edges(PARENTS)[1][0][8:].tolist() == [4, 3, 4, 3], "all that is above"


def test_a_set_has_no_order_and_no_padding():
    encoder = graph_codes.SetEncoder(CONFIG, PARENTS, seed=0)
    found = array(encoder(np.array([[1, 5, 6, 7, 0], [1, 7, 5, 6, 0], [1, 5, 6, 0, 0]])))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 1e-3
    np.testing.assert_allclose(array(encoder(np.array([[1, 5, 6]]))), found[2:], atol=1e-5)


@pytest.fixture
def patients():
    draw = np.random.default_rng(0)
    sets = draw.integers(5, 8, (2, 3, 4)).astype("int32")  # two patients, three visits
    sets[..., 0] = graph_codes.CLS
    labels = draw.integers(0, 2, (2, 3, 1)).astype("float32")
    return {"diagnoses": sets, "medications": sets[::-1].copy(), "labels": labels,
            "asked": np.array([[0, 1, 1], [0, 1, 0]], "float32")}  # fmt: skip


@pytest.mark.parametrize("graph", [True, False])
def test_no_visit_reads_its_own_medications_or_what_comes(patients, graph):
    encoder = graph_codes.SetEncoder(CONFIG, PARENTS, graph, seed=0)
    model = graph_codes.MedicationModel(encoder, 8, 1, seed=0)
    before = array(model(patients)["logits"])
    for visit in range(3):
        for name, moved in (("medications", visit + 1), ("diagnoses", visit)):
            other = {key: value.copy() for key, value in patients.items()}
            other[name][:, visit, 1:] = 12 - other[name][:, visit, 1:]  # 5 for 7, and back
            other[name][:, visit, 1] = 7
            changed = (array(model(other)["logits"]) != before).any(axis=(0, 2))
            assert not changed[:moved].any(), (name, visit)
            assert moved == 3 or changed[moved], "the next one does"


def test_the_losses_by_hand(patients):
    encoder = graph_codes.SetEncoder(CONFIG, PARENTS, seed=0)
    model = graph_codes.MedicationModel(encoder, 8, 1, seed=0)
    p = 1 / (1 + np.exp(-array(model(patients)["logits"])))
    y = patients["labels"]
    losses = -(y * np.log(p) + (1 - y) * np.log(1 - p))[..., 0]
    [(total, weight)] = model.loss_terms(patients, model(patients)).values()
    assert float(weight) == 3
    assert float(total) == pytest.approx(float((losses * patients["asked"]).sum()), rel=1e-4)
    visits = {"diagnoses": patients["diagnoses"][0], "medications": patients["medications"][0],
              "diagnoses_labels": np.eye(3, 2, dtype="float32"),
              "medications_labels": np.ones((3, 1), "float32")}  # fmt: skip
    pretrainer = graph_codes.VisitPretrainer(encoder, 8, SIZES, seed=0)
    outputs = pretrainer(visits)
    terms = pretrainer.loss_terms(visits, outputs)
    assert list(terms) == [f"{target}_of_{source}_loss" for source in SIZES for target in SIZES]
    p = 1 / (1 + np.exp(-array(outputs["diagnoses_of_medications_loss"])))
    y = visits["diagnoses_labels"]
    mean = -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(axis=1)
    total, weight = terms["diagnoses_of_medications_loss"]
    assert float(total) == pytest.approx(float(mean.sum()), rel=1e-4) and float(weight) == 3
