"""Distillation's losses and ULMFiT's LSTMs beside PyTorch's own."""

import dataclasses

import keras
import numpy as np

import official_bert as ob
from experiments.beyond.distil.distillation import cosines, soft_target_losses, taught
from experiments.beyond.distil.teachers import Teacher
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from tests.parity import finetuning, peers
from tests.parity.results import Result, check

_DISTILBERT = ({"name": "masked_lm", "weight": 2.0}, "soft_targets", "cosine_states")


@check("torch")
def distillation_losses() -> list[Result]:
    """Return the three losses as DistilBERT's code has them: all real tokens, the masked ones,
    all."""
    import torch

    shape = finetuning.without_dropout(dataclasses.replace(peers.SMALL, num_hidden_layers=4))
    own = {"num_hidden_layers": 2, "type_vocab_size": 0, "pooler_activation": "none"}
    pretrained = ob.BertPretrainer(shape, seed=1)
    peers.shake(pretrained, 0, 0.3)  # weights of unit size: nothing that is compared is near zero
    student, teacher = shape.replaced(**own), Teacher(pretrained)
    model = ob.BertPretrainer(student, taught(_DISTILBERT, teacher), seed=2)
    peers.shake(model, 3, 0.3)
    batch = peers.random_batch(shape, rows=6, length=24)
    batch |= {"example_weights": np.ones(6, "float32")}
    batch["masked_lm_weights"][:, 3] = 0
    outputs = model(batch)
    real = torch.from_numpy(batch["input_mask"] > 0)
    logits, theirs = (_tensor(outputs[f"{who}_logits"]) for who in ("student", "teacher"))
    soft = torch.nn.KLDivLoss(reduction="batchmean")(
        torch.log_softmax(logits[real] / 2, -1), torch.softmax(theirs[real] / 2, -1)
    )
    labels = torch.full(real.shape, -100)
    for row, slot in np.argwhere(batch["masked_lm_weights"] > 0):
        place, label = (int(batch[f"masked_lm_{name}"][row, slot]) for name in ("positions", "ids"))
        labels[row, place] = label
    masked = torch.nn.CrossEntropyLoss(ignore_index=-100)(logits.flatten(0, 1), labels.flatten())
    states = [_tensor(one.encoder(batch)["sequence_output"])[real] for one in (model, teacher)]
    cosine = torch.nn.CosineEmbeddingLoss()(*states, torch.ones(len(states[0])))
    batch = {name: keras.ops.convert_to_tensor(x) for name, x in batch.items()}
    terms = model.loss_terms(batch, outputs)
    found = {name: _numpy(total) / _numpy(weight) for name, (total, weight) in terms.items()}
    found["total"] = model.compute_loss(x=batch, y_pred=outputs)
    expected = {
        "soft_target_loss": 4 * soft,
        "masked_lm_loss": masked,
        "cosine_loss": cosine,
        "total": 5 * 4 * soft + 2 * masked + cosine,
    }
    worst = max(abs(float(found[n]) / float(x) - 1) for n, x in expected.items())
    what = "losses of DistilBERT, each and together, relative; 2 of 4 layers"
    return [Result(what, "PyTorch", worst, 2e-5)]


@check("torch")
def distillation_gradients() -> list[Result]:
    """Soft targets and cosines of random logits, and their slope in a random direction."""
    import torch

    rng = np.random.default_rng(0)
    own, theirs = rng.normal(0, 3, (2, 6, 11)).astype("float32")
    x, y = torch.tensor(own, requires_grad=True), torch.tensor(theirs)
    soft = torch.nn.KLDivLoss(reduction="none")(
        torch.log_softmax(x / 2, -1), torch.softmax(y / 2, -1)
    ).sum(-1)
    cosine = torch.nn.CosineSimilarity(dim=-1)(x, y)
    (4 * soft.sum() + cosine.sum()).backward()

    def values(x):
        return [_numpy(soft_target_losses(x, theirs, 2.0)), _numpy(cosines(x, theirs))]

    apart = max(
        np.abs(mine / them.detach().numpy() - 1).max()
        for mine, them in zip(values(own), (4 * soft, cosine), strict=True)
    )
    direction, step = rng.normal(size=own.shape), 1e-3
    after, before = (
        sum(x.astype("float64").sum() for x in values((own + sign * direction).astype("float32")))
        for sign in (step, -step)
    )
    slope = float((x.grad.numpy() * direction).sum())
    ours = (after - before) / (2 * step)
    return [
        Result("soft targets and cosines of 6 rows, relative", "PyTorch", apart, 1e-5),
        Result("their slope, by differences, relative", "PyTorch", abs(ours / slope - 1), 2e-3),
    ]


@check("torch")
def awd_lstm() -> list[Result]:
    """Return the states of ULMFiT's three LSTMs, by `torch.nn.LSTM` with the same weights."""
    import torch

    config = AwdLstmConfig(
        vocab_size=peers.SMALL.vocab_size, max_position_embeddings=40, hidden_size=12,
        intermediate_size=20, num_hidden_layers=3, initializer_range=0.3,
    )  # fmt: skip
    encoder, worst = ob.BertEncoder(config, seed=0), 0.0
    batch = peers.random_batch(config, rows=6, length=24)
    below, *states = map(_tensor, encoder(batch)["hidden_states"])
    for block, state in zip(encoder.blocks, states, strict=True):
        lstm = torch.nn.LSTM(below.shape[-1], block.width, batch_first=True)
        ours = [_tensor(_numpy(v).T) for v in block.weights]
        with torch.no_grad():
            for one, other in zip(lstm.parameters(), [*ours, 0 * ours[2]], strict=True):
                one.copy_(other)
            below, _ = lstm(below)
        worst = max(worst, peers.farthest(state, below))
    return [Result("states of an AWD-LSTM (3 layers, 20, 20 and 12 wide)", "PyTorch", worst, 1e-6)]


def _numpy(x) -> np.ndarray:
    return np.array(keras.ops.convert_to_numpy(x))


def _tensor(x):
    import torch

    return torch.from_numpy(_numpy(x))
