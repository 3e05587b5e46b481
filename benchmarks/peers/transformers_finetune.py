"""One fine-tuning of `transformers` on PyTorch.

Its own tokeniser, model class, loss, grouping by length and dynamic padding; our optimiser's rule.
"""

import math
import time


def run(config: dict) -> tuple[dict, float]:
    """(scores on dev, seconds) of the fields of a FinetuneConfig."""
    import torch
    import transformers

    from data_prep.tasks import get_task
    from data_prep.tasks.batches import sample
    from tests.parity.finetuning import TorchBertAdamW

    transformers.logging.set_verbosity_error()
    start = time.perf_counter()
    torch.manual_seed(config["seed"])
    task = get_task(config["task"], config["data_dir"])
    train = sample(task.examples("train"), config["max_train_examples"])
    dev = task.examples("dev")
    tokenizer = transformers.BertTokenizerFast.from_pretrained(config["model"])
    model = transformers.BertForSequenceClassification.from_pretrained(
        config["model"], num_labels=len(task.labels)
    )

    def encode(examples):
        second = None if examples[0].text_b is None else [e.text_b for e in examples]
        length = config["max_seq_length"]
        return tokenizer([e.text_a for e in examples], second, truncation=True, max_length=length)

    def batch_of(encoded, rows):
        fields = {name: [encoded[name][i] for i in rows] for name in encoded}
        return tokenizer.pad(fields, pad_to_multiple_of=8, return_tensors="pt")

    encoded = encode(train)
    labels = torch.tensor([task.labels.index(e.label) for e in train])
    lengths = [len(ids) for ids in encoded["input_ids"]]
    size = config["train_batch_size"]
    steps = math.ceil(len(train) / size) * int(config["num_train_epochs"])
    optimizer = TorchBertAdamW(model, config["learning_rate"], steps // 10, steps)
    model.train()
    for _ in range(int(config["num_train_epochs"])):
        order = _grouped(lengths, size)
        for i in range(0, len(order), size):
            rows = order[i : i + size]
            model(**batch_of(encoded, rows), labels=labels[rows]).loss.backward()
            optimizer.step()

    model.eval()
    encoded = encode(dev)
    by_length = sorted(range(len(dev)), key=lambda i: -len(encoded["input_ids"][i]))
    predicted = [""] * len(dev)
    with torch.no_grad():
        for i in range(0, len(dev), size):
            rows = by_length[i : i + size]
            best = model(**batch_of(encoded, rows)).logits.argmax(-1).tolist()
            for row, label in zip(rows, best, strict=True):
                predicted[row] = task.labels[label]
    scores = task.score(dev, [{"label": label} for label in predicted])
    return scores, time.perf_counter() - start


def _grouped(lengths, size):
    """A random order; like lengths are neighbours within 50 batches, as its Trainer groups."""
    import torch

    order = torch.randperm(len(lengths)).tolist()
    many = 50 * size
    chunks = [order[i : i + many] for i in range(0, len(order), many)]
    grouped = [i for chunk in chunks for i in sorted(chunk, key=lambda j: -lengths[j])]
    batches = [grouped[i : i + size] for i in range(0, len(grouped), size)]
    return [i for b in torch.randperm(len(batches)).tolist() for i in batches[b]]
