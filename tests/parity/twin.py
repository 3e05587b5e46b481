"""BERT pre-training a second time, in PyTorch and from the formulas, to run beside ours.

Nothing of `official_bert` is used here: tensors come as a dictionary under Hugging Face's names,
batches as numpy arrays. No dropout.
"""

import math

import torch
from torch.nn import functional as F

BETA_1, BETA_2, EPSILON, DECAY, CLIP = 0.9, 0.999, 1e-6, 0.01, 1.0


class Twin:
    """The model, its optimiser (AdamW without bias correction) and its schedule.

    Args:
      tensors: {name: float32 array} of a BertForPreTraining.
      layers, heads: the model's L and A.
      peak, warmup_steps, total_steps: of the learning rate.
    """

    def __init__(self, tensors, layers, heads, peak, warmup_steps, total_steps):
        self.weights = {k: torch.tensor(v, requires_grad=True) for k, v in tensors.items()}
        self.layers, self.heads = layers, heads
        self.peak, self.warmup_steps, self.total_steps = peak, warmup_steps, total_steps
        self.moments = {k: [torch.zeros_like(w)] * 2 for k, w in self.weights.items()}
        self.step = 0

    def train(self, batch) -> float:
        """One step; returns the loss before it."""
        loss = self.loss({name: torch.from_numpy(array) for name, array in batch.items()})
        gradients = dict(
            zip(self.weights, torch.autograd.grad(loss, list(self.weights.values())), strict=True)
        )
        norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))
        scale = min(1.0, CLIP / norm)
        rate = self.peak * (1 - self.step / self.total_steps)
        if self.step < self.warmup_steps:
            rate = self.peak * self.step / self.warmup_steps
        with torch.no_grad():
            for name, weight in self.weights.items():
                gradient = gradients[name] * scale
                m, v = self.moments[name]
                m = BETA_1 * m + (1 - BETA_1) * gradient
                v = BETA_2 * v + (1 - BETA_2) * gradient**2
                self.moments[name] = [m, v]
                update = m / (v.sqrt() + EPSILON)
                if not name.endswith("bias") and "LayerNorm" not in name:
                    update = update + DECAY * weight
                weight -= rate * update
        self.step += 1
        return loss.item()

    def loss(self, batch) -> torch.Tensor:
        """Masked-LM loss (a sum over the number of predictions + 1e-5) plus next-sentence loss."""
        sequence, pooled = self.encode(
            batch["input_ids"].long(), batch["input_mask"], batch["segment_ids"].long()
        )
        rows = torch.arange(len(sequence))[:, None]
        x = sequence[rows, batch["masked_lm_positions"].long()]  # [B, P, H]
        x = self.norm(
            F.gelu(self.dense(x, "cls.predictions.transform.dense")),
            "cls.predictions.transform.LayerNorm",
        )
        table = self.weights["bert.embeddings.word_embeddings.weight"]
        logits = x @ table.T + self.weights["cls.predictions.bias"]
        losses = F.cross_entropy(
            logits.flatten(0, 1), batch["masked_lm_ids"].long().flatten(), reduction="none"
        )
        weights = batch["masked_lm_weights"].flatten()
        masked_lm = (losses * weights).sum() / (weights.sum() + 1e-5)
        next_sentence = F.cross_entropy(
            self.dense(pooled, "cls.seq_relationship"), batch["next_sentence_labels"][:, 0].long()
        )
        return masked_lm + next_sentence

    def encode(self, ids, mask, segments):
        rows, length = ids.shape
        x = F.embedding(ids, self.weights["bert.embeddings.word_embeddings.weight"])
        x = x + F.embedding(segments, self.weights["bert.embeddings.token_type_embeddings.weight"])
        x = x + self.weights["bert.embeddings.position_embeddings.weight"][:length]
        x = self.norm(x, "bert.embeddings.LayerNorm")
        hidden = (mask == 0)[:, None, None, :]
        for i in range(self.layers):
            name = f"bert.encoder.layer.{i}"

            def heads(part, x=x, name=name):
                y = self.dense(x, f"{name}.attention.self.{part}")
                return y.view(rows, length, self.heads, -1).transpose(1, 2)

            query, key, value = heads("query"), heads("key"), heads("value")
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
            scores = scores.masked_fill(hidden, float("-inf"))
            context = (scores.softmax(-1) @ value).transpose(1, 2).reshape(rows, length, -1)
            x = self.norm(
                x + self.dense(context, f"{name}.attention.output.dense"),
                f"{name}.attention.output.LayerNorm",
            )
            inner = F.gelu(self.dense(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return x, torch.tanh(self.dense(x[:, 0], "bert.pooler.dense"))

    def dense(self, x, name):
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-12)
