"""BERT's successors against `transformers`: folders it writes are read and compute the same, and it
reads those written here."""

import tempfile
from pathlib import Path

import keras
import numpy as np

import official_bert as ob
from experiments.beyond.common import generation
from official_bert.checkpoints import keras_hub
from official_bert.checkpoints.hugging_face import huggingface
from tests.parity import peers
from tests.parity.results import Result, check
from tests.parity.transformers_checks import relative_difference

AGAINST = "transformers (PyTorch)"
_SHAPE = {"vocab_size": 60, "num_attention_heads": 4, "num_hidden_layers": 4}
_BERT = {**_SHAPE, "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 40}


@check("torch", "transformers")
def roberta() -> list[Result]:
    """RoBERTa: positions from 2, one segment row for all, its language-model head."""
    fields = {**_BERT, "max_position_embeddings": 42, "type_vocab_size": 1, "pad_token_id": 1}
    return _compare("Roberta", "ForMaskedLM", fields, _masked_lm)


@check("torch", "transformers")
def xlm_roberta() -> list[Result]:
    """XLM-RoBERTa: what RoBERTa computes, under its own names."""
    fields = {**_BERT, "max_position_embeddings": 42, "type_vocab_size": 1, "pad_token_id": 1}
    found = _compare("XLMRoberta", "ForMaskedLM", fields, _masked_lm)
    return found + _compare("XLMRoberta", "ForSequenceClassification", fields, _classifier)


@check("torch", "transformers")
def albert() -> list[Result]:
    """ALBERT: narrow tables, two groups of shared layers, tanh GELU, the head of order."""
    fields = {**_BERT, "embedding_size": 12, "num_hidden_groups": 2}
    return _compare("Albert", "ForPreTraining", fields, _albert)


@check("torch", "transformers")
def distilbert() -> list[Result]:
    """DistilBERT: no segments, no pooler; a classifier after a dense layer with ReLU."""
    fields = {
        "vocab_size": 60, "dim": 32, "hidden_dim": 48, "n_layers": 3, "n_heads": 4,
        "max_position_embeddings": 40,
    }  # fmt: skip
    masked_lm = _compare("DistilBert", "ForMaskedLM", fields, _masked_lm)
    return masked_lm + _compare("DistilBert", "ForSequenceClassification", fields, _classifier)


@check("torch", "transformers")
def electra() -> list[Result]:
    """ELECTRA: narrow tables, both models' heads, a classifier with GELU."""
    fields = {**_BERT, "embedding_size": 12}
    found = _compare("Electra", "ForPreTraining", fields, _replaced_token)
    found += _compare("Electra", "ForMaskedLM", fields, _masked_lm)
    return found + _compare("Electra", "ForSequenceClassification", fields, _classifier)


@check("torch", "transformers")
def openai_gpt() -> list[Result]:
    """OpenAI GPT: left to right, no segments, no normalisation of embeddings, the tied table."""
    return _gpt("OpenAIGPT")


@check("torch", "transformers")
def gpt2() -> list[Result]:
    """GPT-2: normalisation before the sub-layers and after the last; greedy text."""
    return _gpt("GPT2", n_inner=48, bos_token_id=59, eos_token_id=59)


def _theirs(family, kind, **fields):
    """Return a model of transformers in evaluation, with random weights."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**fields)
    model = getattr(transformers, family + kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # zero biases and unit gains would hide mistakes
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def _gpt(family, **fields) -> list[Result]:
    import torch
    import transformers

    sizes = {"vocab_size": 60, "n_positions": 40, "n_embd": 32, "n_layer": 3, "n_head": 4}
    theirs = _theirs(family, "LMHeadModel", **sizes, **fields)
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = huggingface.import_huggingface(Path(folder))
        again = _written_gpt(type(theirs), Path(folder, "lm"), ours.model)
        bare_class = getattr(transformers, f"{family}Model")
        bare = _written_gpt(bare_class, Path(folder, "bare"), ours.encoder)
    batch = peers.random_batch(ours.config, rows=6, length=24)
    ids, real = batch["input_ids"] % 60, batch["input_mask"][..., None]
    given = torch.from_numpy(_numpy(ids)).long()
    with torch.no_grad():
        outputs = theirs(given, output_hidden_states=True)
        read_back = again(given).logits.numpy(), bare(given).last_hidden_state.numpy()
    mine = ours.encoder({**batch, "input_ids": ids})["hidden_states"]
    pairs = zip(map(_numpy, mine), outputs.hidden_states, strict=True)
    worst = max(peers.farthest(x * real, y.numpy() * real) for x, y in pairs)
    logits = _numpy(ours.model.masked_lm(mine[-1], ours.encoder.embeddings.word_embeddings))
    scores = peers.farthest(logits[..., :60] * real, outputs.logits.numpy() * real)
    logits_back = peers.farthest(logits * real, read_back[0] * real)
    states_back = peers.farthest(_numpy(mine[-1]) * real, read_back[1] * real)
    name = f"{family}LMHeadModel, tiny shape, random weights"
    bare_name = f"{family}Model, tiny shape, random weights, written here"
    begun = given[:4, :6]
    options = {"do_sample": False, "max_length": 40, "eos_token_id": 59, "pad_token_id": 59}
    written = theirs.generate(begun, attention_mask=torch.ones_like(begun), **options)
    step = generation.NextToken(ours.encoder, ours.model.masked_lm, 60)
    state, prompts = step.begin(4, 40), begun.tolist()
    found = generation.decode(step.compiled(), state, prompts, 40, generation.greedy, 59)
    theirs_written = [[i for i in row if i != 59] for row in written[:, 6:].tolist()]
    differ = sum(a != b for a, b in zip(found, theirs_written, strict=True))
    return [
        Result(f"greedy texts of 34 tokens that differ, of 4; {name}", AGAINST, differ, 0),
        Result(f"hidden states; {name}", AGAINST, worst, 2e-5),
        Result(f"hidden states; {bare_name}", AGAINST, states_back, 2e-5),
        Result(f"next-token logits; {name}", AGAINST, scores, 2e-5),
        Result(f"next-token logits; {name}, written here", AGAINST, logits_back, 2e-5),
    ]


def _written_gpt(kind, folder, model):
    """Return the model as transformers reads what is written here; here it comes back to the
    bit."""
    huggingface.export_huggingface(folder, model, None)
    again, told = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys")), told
    ours, encoder = huggingface.import_huggingface(folder), getattr(model, "encoder", model)
    for found, expected in zip(ours.encoder.weights, encoder.weights, strict=True):
        assert np.array_equal(_numpy(found), _numpy(expected)), expected.path
    return again.eval()


@check("keras_hub")
def keras_hub_backbones() -> list[Result]:
    """Random small encoders, computed by KerasHub: BERT from a preset that we saved, four of its
    successors from what we hand it."""
    import keras_hub as peer

    tanh = {"gelu_form": "tanh"}
    bare = {"type_vocab_size": 0, "pooler_activation": "none"}
    narrow = {"embedding_size": 20}
    shapes = {
        "BertBackbone": tanh,
        "RobertaBackbone": {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
        "DistilBertBackbone": bare,
        "AlbertBackbone": {**narrow, **tanh, "num_hidden_groups": 1},
        "ElectraBackbone": {**narrow, **tanh},
    }
    found = []
    for name, fields in shapes.items():
        encoder = ob.BertEncoder(peers.SMALL.replaced(**fields), seed=5)
        peers.shake(encoder)
        if name == "BertBackbone":
            with tempfile.TemporaryDirectory() as folder:
                keras_hub.export_keras_hub(Path(folder, "preset"), encoder, None)
                backbone = peer.models.Backbone.from_preset(f"{folder}/preset")
        else:
            backbone = keras_hub.to_backbone(encoder)
        assert type(backbone).__name__ == name
        batch = peers.random_batch(encoder.config, rows=6, length=32)
        inputs = {"token_ids": batch["input_ids"], "padding_mask": batch["input_mask"]}
        if name in ("BertBackbone", "AlbertBackbone", "ElectraBackbone"):
            inputs["segment_ids"] = batch["segment_ids"]
        theirs = backbone(inputs)
        theirs = theirs if isinstance(theirs, dict) else {"sequence_output": theirs}
        ours = encoder(batch)
        real = batch["input_mask"][..., None]
        for output, x in theirs.items():
            mask = real if output == "sequence_output" else 1
            worst = peers.farthest(_numpy(ours[output]) * mask, _numpy(x) * mask)
            found.append(Result(f"{output}; small shape", f"KerasHub {name}", worst, 2e-5))
    return found


def _compare(family, kind, fields, heads) -> list[Result]:
    """Hidden states and what `heads` compares, for random weights of a tiny shape."""
    import torch

    labels = {"num_labels": 3} if kind == "ForSequenceClassification" else {}
    theirs = _theirs(family, kind, **fields, **labels)
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = huggingface.import_huggingface(Path(folder))
        written = Path(folder) / "written"
        huggingface.export_huggingface(written, ours.model, None)
        again, told = type(theirs).from_pretrained(written, output_loading_info=True)
        _assert_same_tensors(theirs, again.eval(), told)
    batch = peers.random_batch(ours.config, rows=6, length=24)
    inputs = _inputs(family, batch)
    with torch.no_grad():
        outputs = theirs(**inputs, output_hidden_states=True)
        read_back = again(**inputs, output_hidden_states=True).hidden_states[-1]
    real = batch["input_mask"][..., None]
    states = outputs.hidden_states
    mine = [keras.ops.convert_to_numpy(x) for x in ours.encoder(batch)["hidden_states"]]
    # ALBERT's and ELECTRA's first state is before or after the dense layer: compare the last ones.
    pairs = list(zip(mine, states, strict=True))[1:]
    worst = max(peers.farthest(x * real, y.numpy() * real) for x, y in pairs)
    name = f"{family}{kind}, tiny shape, random weights"
    assert all("pooler" in n or "next_sentence" in n or "generator" in n or "masked_lm" in n
               for n in ours.report.initial), ours.report.initial  # fmt: skip
    found = [Result(f"hidden states; {name}", AGAINST, worst, 2e-5)]
    back = peers.farthest(mine[-1] * real, read_back.numpy() * real)
    found.append(Result(f"hidden states; {name}, written here", AGAINST, back, 2e-5))
    found += [
        Result(f"{what}; {name}", AGAINST, peers.farthest(x, y.numpy()), 2e-5)
        for what, x, y in heads(ours, batch, outputs)
    ]
    return found if labels else found + _training(family, ours.model, theirs, batch, name)


def _training(family, model, theirs, batch, name) -> list[Result]:
    """Return the loss of pre-training and its gradient, which is written as if it were the weights.

    Changes the model's weights.
    """
    import tensorflow as tf
    import torch
    from safetensors.torch import load_file

    batch = {name: tf.convert_to_tensor(x) for name, x in batch.items()}
    batch["next_sentence_labels"] *= 0  # every B follows its A, so that every row has an order
    corrupted = batch
    for one in model.objectives:
        corrupted = one.corrupt(model, corrupted, None)
    corrupted = {name: _numpy(x) for name, x in corrupted.items()}
    inputs = _inputs(family, corrupted)
    losses = ["masked_lm_loss", "sentence_order_loss"]
    if "replaced_token_labels" in corrupted:
        losses = ["replaced_token_loss"]  # the generator is a model of its own there
        inputs["labels"] = torch.from_numpy(corrupted["replaced_token_labels"]).long()
    else:
        places, ids = (
            torch.from_numpy(corrupted[f"masked_lm_{field}"]).long()
            for field in ("positions", "ids")
        )
        nowhere = torch.full_like(inputs["input_ids"], -100)
        inputs["labels"] = nowhere.scatter(1, places, ids)
    if "sentence_order_labels" in corrupted:
        order = torch.from_numpy(corrupted["sentence_order_labels"]).long()
        inputs["sentence_order_label"] = order
    their_loss = theirs(**inputs).loss
    their_loss.backward()

    with tf.GradientTape() as tape:
        terms = model.loss_terms(batch, model(batch))
        loss = sum(total / weight for name, (total, weight) in terms.items() if name in losses)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign(tf.zeros_like(variable) if gradient is None else gradient)
    with tempfile.TemporaryDirectory() as folder:
        huggingface.export_huggingface(Path(folder, "m"), model, None)
        written = load_file(Path(folder, "m", "model.safetensors"))
    parameters = dict(theirs.named_parameters(remove_duplicate=False))
    stored = {id(x) for name, x in parameters.items() if name in written}
    grads = {
        name: x.grad.numpy()
        for name, x in parameters.items()
        if x.grad is not None
        and (name in written or id(x) not in stored)  # but copies of tied ones
    }
    assert len(grads) > 10 and grads.keys() <= written.keys(), grads.keys() - written.keys()
    worst = max(relative_difference(written[n].numpy(), grad) for n, grad in grads.items())
    return [
        Result(f"loss; {name}", AGAINST, abs(float(loss) - their_loss.item()), 2e-5),
        Result(f"gradient, worst tensor, norm-wise; {name}", AGAINST, worst, 1e-4),
    ]


def _inputs(family, batch) -> dict:
    """Return a batch as the family's models of `transformers` take it."""
    inputs = peers.their_inputs(batch)
    if family == "DistilBert":
        inputs.pop("token_type_ids")
    if "Roberta" in family:  # one row of segments; ids of padding are 1, which says the positions
        inputs["token_type_ids"].zero_()
        inputs["input_ids"][inputs["attention_mask"] == 0] = 1
    return inputs


def _assert_same_tensors(before, after, told) -> None:
    """Nothing is missing, unexpected or changed by a bit, but for positions that are not used."""
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys")), told
    after = after.state_dict()
    for name, tensor in before.state_dict().items():
        unused = 2 if "roberta" in name and "position_embeddings" in name else 0
        assert tensor[unused:].equal(after[name][unused:]) if tensor.ndim else True, name


def _numpy(x) -> np.ndarray:
    return keras.ops.convert_to_numpy(x)


def _masked_lm(ours, batch, theirs):
    logits = _numpy(ours.model(batch)["masked_lm_logits"])
    yield "masked-LM logits", logits, _at_masks(theirs.logits, batch)


def _albert(ours, batch, theirs):
    assert [one.name for one in ours.model.objectives] == ["masked_lm", "sentence_order"]
    batch = {name: keras.ops.convert_to_tensor(x) for name, x in batch.items()}
    encoded = ours.encoder(batch)
    pooled = encoded["pooled_output"]
    language_model = ours.model.objectives[0].call(ours.model, batch, encoded)
    logits = _numpy(language_model["masked_lm_logits"])
    yield "masked-LM logits", logits, _at_masks(theirs.prediction_logits, batch)
    yield "order logits", _numpy(ours.model.sentence_order(pooled)), theirs.sop_logits


def _replaced_token(ours, batch, theirs):
    real = batch["input_mask"]
    logits = _numpy(ours.model.replaced_token(ours.encoder(batch)["sequence_output"])) * real
    import torch

    yield "replaced-token logits", logits, theirs.logits * torch.from_numpy(real)


def _classifier(ours, batch, theirs):
    yield "class logits", _numpy(ours.model(batch)["logits"]), theirs.logits


def _at_masks(logits, batch):
    import torch

    places = torch.from_numpy(_numpy(batch["masked_lm_positions"])).long()[..., None]
    return logits.gather(1, places.expand(-1, -1, logits.shape[-1]))
