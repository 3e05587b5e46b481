"""Fine-tuning beside `transformers` on PyTorch: the same weights, batches and update rule."""

import dataclasses

import numpy as np

from experiments.training.step import strategies
from experiments.training.step.trainer import Trainer
from experiments.training.step.trainer_state import StepOptions
from tests.parity import peers

# The batch's labels under their names, and how they are stored there.
_LABELS = {"label_ids": "labels"} | {n: n for n in ("start_positions", "end_positions")}
_NO_LABEL = -100  # of a token, in `transformers`


class TorchBertAdamW:
    """BERT's update for the parameters of a PyTorch model: see `official_bert.optimization`.

    Args:
      model: its biases and layer normalisations are not decayed.
      peak, warmup_steps, total_steps: of the learning rate.
    """

    def __init__(self, model, peak, warmup_steps, total_steps, decay=0.01, clip_norm=1.0):
        import torch

        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.parameters = [p for _, p in named]
        self.decays = [
            0.0 if name.endswith("bias") or "LayerNorm" in name else decay for name, _ in named
        ]
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.peak, self.warmup_steps, self.total_steps = peak, warmup_steps, total_steps
        self.clip_norm, self.steps = clip_norm, 0

    def learning_rate(self) -> float:
        if self.steps < self.warmup_steps:
            return self.peak * self.steps / self.warmup_steps
        return self.peak * (1 - self.steps / self.total_steps)

    def step(self) -> None:
        """Clips, updates, and clears the gradients."""
        import torch

        with torch.no_grad():
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
            norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
            torch._foreach_mul_(gradients, self.clip_norm / max(float(norm), self.clip_norm))
            torch._foreach_lerp_(self.first, gradients, 0.1)
            torch._foreach_mul_(self.second, 0.999)
            torch._foreach_addcmul_(self.second, gradients, gradients, 0.001)
            divisors = torch._foreach_sqrt(self.second)
            torch._foreach_add_(divisors, 1e-6)
            updates = torch._foreach_div(self.first, divisors)
            torch._foreach_add_(updates, torch._foreach_mul(self.parameters, self.decays))
            torch._foreach_add_(self.parameters, updates, alpha=-self.learning_rate())
            for parameter in self.parameters:
                parameter.grad = None
        self.steps += 1


def loss_curves(
    model, batches: list[dict], peak: float, warmup_steps: int, theirs=None, their_loss=None
):
    """(our losses, theirs), a float a batch: both start from `model` and take one step a batch.

    Ours go through the experiments' own training step. Batches have no padding rows.

    Args:
      model: of `official_bert.heads`, without dropout, or a pre-trainer; is trained.
      batches: of `data_prep.tasks.batches`.
      theirs: the peer, where it is not `model` as transformers loads it; is trained.
      their_loss: function of a batch, where theirs is not that of its labels.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # beside TensorFlow's, more of them wait for each other
    theirs = (theirs or peers.in_transformers(model)).train()
    their_loss = their_loss or (
        lambda batch: theirs(**peers.their_inputs(batch), **their_labels(batch)).loss
    )
    # It gives [PAD]'s embedding no gradient. The original does, and a span's softmax, which covers
    # the places of padding as well, is where that can be seen.
    theirs.base_model.embeddings.word_embeddings.padding_idx = None
    optimizer = TorchBertAdamW(theirs, peak, warmup_steps, len(batches))
    trainer = Trainer(lambda seed: model, strategies.get_strategy("one_device"), StepOptions())
    trainer.set_schedule(peak, warmup_steps, len(batches))
    ours, others = [], []
    for batch in batches:
        ours.append(float(trainer.read([trainer.train_on(batch)])["loss"][0]))
        loss = their_loss(batch)
        loss.backward()
        optimizer.step()
        others.append(loss.item())
    torch.set_num_threads(threads)
    return np.array(ours), np.array(others)


def their_labels(batch: dict) -> dict:
    """Return a batch's labels as `transformers` names and marks them."""
    import torch

    found = {}
    for ours, name in _LABELS.items():
        if ours in batch:
            labels = torch.from_numpy(np.array(batch[ours]))
            if not labels.is_floating_point():
                labels = labels.long()
                labels[labels == -1] = _NO_LABEL
            found[name] = labels
    return found


def without_dropout(config):
    return dataclasses.replace(config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
