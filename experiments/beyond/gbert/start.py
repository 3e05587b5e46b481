"""G-BERT (`experiments.beyond.gbert.model`) as a fine-tuning run: pre-trained and fine-tuned.

A FinetuneConfig asks for it by `model="gbert"`, or for it without its graph, without pre-training
or without both; `bert` has its sizes. Shang et al. (2019) are followed: five epochs of pre-training
on all visits and five of fine-tuning on patients follow each other until `num_train_epochs` of the
latter are done. The weights are the last ones; none are chosen on dev.
"""

import dataclasses

import numpy as np

from experiments.beyond.common.shape import check_plain
from experiments.beyond.gbert.task import KINDS
from experiments.training.finetuning.one_shot_models import OneShotModel, take_steps
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError

# model of a FinetuneConfig -> (whether it has the graph, whether it is pre-trained)
NAMES = {
    "gbert": (True, True),
    "gbert-no-graph": (False, True),
    "gbert-no-pretraining": (True, False),
    "gbert-neither": (False, False),
}
_STAGE = 5  # epochs
_PATIENTS = 8  # of a batch
_CORRUPTED, _MASKED, _RANDOM = 0.15, 0.8, 0.1


class GBert(OneShotModel):
    """G-BERT, whole or without some of its parts."""

    head, does = "medications", "reads visits"
    has_seeds = True

    def check_finetuning(self, config, task):
        check_plain(config.bert_config, config.model)
        if config.num_train_epochs < 1 or config.num_train_epochs % 1:
            told = "G-BERT's epochs are whole"
            raise UserError(f"--config.num_train_epochs={config.num_train_epochs}: {told}")
        return super().check_finetuning(config, task)

    def learn(self, config, task, train, logged):
        tensorflow_start.import_tensorflow()
        return learn(config, task, train, logged)

    def planned_bert(self, config):
        return config.bert_config

    def planned_work(self, config, bert, train_examples, dev_examples):
        # Three visits a patient, two sets each, of eight codes: an estimate.
        work = bert.encoder_flops(6 * train_examples, 8)
        return [(3 * work * config.num_train_epochs * (1 + NAMES[config.model][1]), None)]


class Codes:
    """The rows of the table, and patients as batches.

    Attributes:
      parents: of each row, as of `graph_codes.CodeTable`.
      sizes: {kind: how many codes are told apart}.
    """

    def __init__(self, task, visits):
        from experiments.beyond.gbert import model as graph_codes

        self._special = graph_codes
        above = task.parents
        inner = {parent for parent in above.values() if parent}
        medications = task.medications
        told = {code for diagnoses, _ in visits for code in diagnoses}
        leaves = sorted((above.keys() - inner | told) - {*medications})
        names = [*leaves, *medications, *sorted(inner - told - {*medications})]
        row_of = {name: graph_codes.SPECIAL + i for i, name in enumerate(names)}
        parents = [row_of.get(above[name], -1) for name in names]
        self.parents = [-1] * graph_codes.SPECIAL + parents
        first = graph_codes.SPECIAL
        self._first = {"diagnoses": first, "medications": first + len(leaves)}
        self.sizes = {"diagnoses": len(leaves), "medications": len(medications)}
        if not leaves:
            raise UserError(
                f"{task.data_dir}: no code is one of diagnoses; G-BERT needs both kinds"
            )
        self._row_of = row_of
        self._lengths = _lengths(visits)

    def sets(self, visits, draw=None) -> dict:
        """Return ids int32 [N, L] of each kind of visits' codes, and labels float32 [N, size].

        Args:
          draw: of numpy; corrupts 15% of the codes.
        """
        found = {}
        # Another length is another graph; what is asked may have more codes than training's sets.
        lengths = map(max, self._lengths, _lengths(visits))
        for number, (kind, length) in enumerate(zip(KINDS, lengths, strict=True)):
            first, size = self._first[kind], self.sizes[kind]
            ids = np.full((len(visits), length), self._special.PAD, np.int32)
            labels = np.zeros((len(visits), size), np.float32)
            for row, target, visit in zip(ids, labels, visits, strict=True):
                # A medication that no training patient has can be read, and is not told apart.
                codes = [self._row_of[code] for code in visit[number]]
                row[: len(codes) + 1] = [self._special.CLS, *codes]
                target[[code - first for code in codes if first <= code < first + size]] = 1
            if draw is not None:
                _corrupt(ids, self._special.MASK, first, size, draw)
            found |= {kind: ids, f"{kind}_labels": labels}
        return found

    def patients(self, patients, most: int) -> dict:
        """Return patients as a batch of `graph_codes.MedicationModel`, of so many visits each."""
        nothing = ((), ())
        visits = [v for p in patients for v in (*p.visits, *[nothing] * most)[:most]]
        sets = self.sets(visits)
        shaped = {name: x.reshape(len(patients), most, -1) for name, x in sets.items()}
        count = np.array([[len(patient.visits)] for patient in patients])
        places = np.arange(most)[None]
        return {
            **{kind: shaped[kind] for kind in KINDS},
            "labels": shaped["medications_labels"],
            "asked": ((places > 0) & (places < count)).astype(np.float32),
        }


def _lengths(visits) -> list[int]:
    """Return each kind's length of the longest set, [CLS] included."""
    return [1 + max(map(len, sets)) for sets in zip(*visits, strict=True)]


def learn(config, task, train, logged):
    """See `OneShotModel.learn`; examples are Patients of the task Visits."""
    import keras

    from experiments.beyond.gbert import model as graph_codes

    graph, pretrained = NAMES[config.model]
    visits = [visit for patient in train for visit in patient.visits]
    several = [patient for patient in train if len(patient.visits) > 1]
    codes = Codes(task, visits)
    bert = dataclasses.replace(config.bert_config, vocab_size=len(codes.parents))
    width = bert.hidden_size
    encoder = graph_codes.SetEncoder(bert, codes.parents, graph, config.seed, name="encoder")
    pretrainer = graph_codes.VisitPretrainer(encoder, width, codes.sizes, config.seed)
    model = graph_codes.MedicationModel(encoder, width, codes.sizes["medications"], config.seed)
    for one in (pretrainer, model):
        one.compile(keras.optimizers.Adam(config.learning_rate))
    draw, epochs = np.random.default_rng(config.seed), int(config.num_train_epochs)
    most = max(len(patient.visits) for patient in several)

    def stages():
        """Yield each step's network and batch."""
        for first in range(0, epochs, _STAGE):
            stage = min(_STAGE, epochs - first)
            if pretrained:
                for chosen in _batches(visits, config.train_batch_size, stage, draw):
                    yield "pretraining_loss", pretrainer, codes.sets(chosen, draw)
            for chosen in _batches(several, _PATIENTS, stage, draw):
                yield "loss", model, codes.patients(chosen, most)

    each = stages()

    def step(_):
        name, network, batch = next(each)
        return {name: network.train_on_batch(batch)}

    steps = epochs * _steps(several, _PATIENTS)
    before = epochs * _steps(visits, config.train_batch_size) * pretrained
    take_steps(before + steps, step, logged, config.log_every)

    def answer(asked):
        longest = max(len(patient.visits) for patient in asked)
        rows = []
        for start in range(0, len(asked), 64):
            batch = codes.patients(asked[start : start + 64], longest)
            logits = keras.ops.convert_to_numpy(model(batch)["logits"])
            rows.append(logits[batch["asked"] > 0])
        return task.predictions(asked, [], {"logits": np.concatenate(rows)})

    return answer, steps


def _steps(items: list, size: int) -> int:
    """Return how many batches of `_batches` an epoch has."""
    return len(items) // min(size, len(items))


def _batches(items: list, size: int, epochs: int, draw):
    """Yield full batches of the items, in an order of its own in each epoch; all where they are
    few."""
    size = min(size, len(items))
    for _ in range(epochs):
        order = draw.permutation(len(items))
        for start in range(0, len(items) - size + 1, size):
            yield [items[i] for i in order[start : start + size]]


def _corrupt(ids, mask: int, first: int, size: int, draw) -> None:
    """Hide codes of rows in place; a random code is of the same kind as the one it replaces."""
    chosen = (ids >= first) & (draw.random(ids.shape) < _CORRUPTED)
    fate = draw.random(ids.shape)
    ids[chosen & (fate < _MASKED)] = mask
    others = draw.integers(first, first + size, ids.shape)
    is_random = chosen & (fate >= _MASKED) & (fate < _MASKED + _RANDOM)
    ids[is_random] = others[is_random]
