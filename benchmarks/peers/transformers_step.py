"""Hugging Face transformers' BertForPreTraining on PyTorch.

Modes: "shipped" (the head over all positions, as the library does), "gathered" (the head over the
masked positions only, as the others do), "compiled" (gathered, under torch.compile). On a GPU where
there is one. Attention is PyTorch's own (sdpa), which transformers chooses.
"""

import torch
from transformers import BertConfig, BertForPreTraining
from turns import arguments, random_batch, sizes, take_turns

(layers, width, heads, batch, length, predictions), mode, precision = arguments()
device = "cuda" if torch.cuda.is_available() else "cpu"
at_once = 16 if device == "cuda" else 1  # steps before the host waits for the loss
torch.manual_seed(0)
config = BertConfig(**sizes(layers, width, heads))
model = BertForPreTraining(config).train().to(device)
raw = {
    k: torch.from_numpy(v.astype("int64") if v.dtype == "int32" else v).to(device)
    for k, v in random_batch(batch, length, predictions).items()
}
decay = [p for n, p in model.named_parameters() if "bias" not in n and "LayerNorm" not in n]
others = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
    lr=1e-4,
    eps=1e-6,
    fused=device == "cuda",
)
labels = torch.full((batch, length), -100, device=device)
labels.scatter_(1, raw["masked_lm_positions"], raw["masked_lm_ids"])


def loss_shipped():
    return model(
        input_ids=raw["input_ids"],
        attention_mask=raw["input_mask"],
        token_type_ids=raw["segment_ids"],
        labels=labels,
        next_sentence_label=raw["next_sentence_labels"][:, 0],
    ).loss


def loss_gathered():
    sequence, pooled = model.bert(
        input_ids=raw["input_ids"],
        attention_mask=raw["input_mask"],
        token_type_ids=raw["segment_ids"],
    )[:2]
    places = raw["masked_lm_positions"][..., None].expand(-1, -1, width)
    logits = model.cls.predictions(torch.gather(sequence, 1, places)).float()
    following = model.cls.seq_relationship(pooled).float()
    cross_entropy = torch.nn.functional.cross_entropy
    return cross_entropy(logits.flatten(0, 1), raw["masked_lm_ids"].flatten()) + cross_entropy(
        following, raw["next_sentence_labels"][:, 0]
    )


compute_loss = loss_shipped if mode == "shipped" else loss_gathered
if mode == "compiled":
    compute_loss = torch.compile(compute_loss)


def train_step():
    with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        loss = compute_loss()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def steps():
    for _ in range(at_once):
        loss = train_step()
    return loss.item()


take_turns(steps, at_once, torch.cuda.max_memory_allocated if device == "cuda" else lambda: None)
