"""Texts to texts: translations, summaries, questions; scored by BLEU (sacrebleu) and ROUGE.

A folder holds train, dev and perhaps test files of two columns, `source` and `target`. BLEU is
sacrebleu's of the whole split (Post 2018); ROUGE-1, -2 and -L are means of F1 (rouge-score). Where
the vocabulary lower-cases and drops accents, so are the targets before both.
"""

import dataclasses
import math

import numpy as np

from data_prep.tasks.split_files import SplitTask
from data_prep.tasks.task import label_list
from experiments.beyond.seq2seq.costs import written_flops
from experiments.beyond.seq2seq.head import DECODERS, RNN_DECODERS, check_writing, decode_outputs
from experiments.beyond.seq2seq.options import Decoder
from experiments.training.start import preflight
from official_bert.common.errors import UserError, check_installed
from official_bert.common.files import atomic_write
from official_bert.tokenization import reference, sequences

_ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
_LIBRARIES = {"sacrebleu": "sacrebleu", "rouge_score": "rouge-score"}


@dataclasses.dataclass(frozen=True)
class Pair:
    """A source and its target; `target` is None where the model has to write it."""

    id: str
    source: str
    target: str | None = None


class TextToText(SplitTask):
    """Texts in, texts out."""

    metrics = ("bleu", "rouge_1", "rouge_2", "rouge_l", "bleu_short", "bleu_long", "bleu_gap")
    prediction_file = "predictions.txt"
    baseline_is, gold = "copies the text", "target"
    scoring = (
        "BLEU of the split (sacrebleu), of the shorter and the longer half of its sources, and the "
        "latter above the former; ROUGE, means of F1"
    )
    hint = (
        ". --task_options.source_column= (and target_column) names others; where the first line is "
        "no header, --task_options.columns=source,target names all columns"
    )
    reading_options = ("source_column", "target_column", "columns", "beams", "length_penalty")

    def __init__(
        self,
        data_dir: str = "",
        *,
        source_column: str = "source",
        target_column: str = "target",
        columns: str | list[str] | tuple[str, ...] = (),
        max_target_length: int = 64,
        beams: int = 1,
        length_penalty: float = 1.0,
        **options,
    ):
        """Options.

        Args:
          source_column, target_column: names of the columns. The test file may lack the target.
          columns: the names of all columns, where the files have no header.
          max_target_length: tokens of a target at most, the first and the last, [CLS] and [SEP],
            included; of what is written too.
          beams: texts that are followed at a time when one is written; 1: the greedy text.
          length_penalty: of beam search; above 0 longer texts become likelier.
        """
        super().__init__(data_dir, **options)
        if max_target_length < 2:
            raise UserError(f"max_target_length={max_target_length}: it is 2 or more")
        check_writing(longest=max_target_length - 1, beams=beams, length_penalty=length_penalty)
        self.header = tuple(label_list(columns))
        self.source_column, self.target_column = source_column, target_column
        self.max_target_length, self.beams = max_target_length, beams
        self.length_penalty = length_penalty
        self.needed = (target_column,)

    @property
    def head(self):
        return {
            "head": "text",
            "problem": "",
            "answers": ("output",),
            "decoder": Decoder().decoder,
            "longest": self.max_target_length - 1,
            "beams": self.beams,
            "length_penalty": self.length_penalty,
        }

    @property
    def input_fields(self):
        return (self.source_column,)

    @classmethod
    def forward_flops(cls, bert, rows, length):
        return written_flops(bert, rows, length)

    def check_training(self, config, bert):
        losses = [one for one in config.model_options if one.adds_loss]
        preflight.refuse(config, ("bilstm",), losses, config.task)
        self._check_length(config.max_seq_length)
        decoder = Decoder.of(config).decoder
        if decoder in RNN_DECODERS and config.model:
            raise UserError(
                f"--config.decoder={decoder}: GRUs begin with random weights; leave model out, and "
                "give bert, whose sizes they take, and vocab"
            )
        if bert and decoder in DECODERS and bert.attention_direction != "bidirectional":
            raise UserError(
                f"--config.task={config.task}: texts are read by Transformers that see both ways; "
                f"this model is {bert.attention_direction}"
            )
        longest = 2 * config.max_seq_length
        if bert and decoder == "prefix" and longest > bert.max_position_embeddings:
            raise UserError(
                f"--config.decoder=prefix: source and target, {config.max_seq_length} tokens each, "
                f"stand in one row; the model has {bert.max_position_embeddings} positions"
            )

    def settings(self):
        names = ("source_column", "target_column", "max_target_length", "beams", "length_penalty")
        return {**{name: getattr(self, name) for name in names}, "columns": list(self.header)}

    def _read_split(self, split):
        """Read the pairs of a split.

        Raises:
          UserError: no file, a missing column, an empty text, or what scores is not installed.
        """
        for module, package in _LIBRARIES.items():
            check_installed(module, f"{package} is missing", "generation")
        found = []
        for index, row, where in self.rows(split, self.table(split)):
            target = row.get(self.target_column)
            if split == "test" and target is None:
                target = None
            elif not isinstance(target, str) or not target.strip():
                raise UserError(f"{where}: {self.target_column} is not text; leave the row out")
            if not row[self.source_column].strip():
                raise UserError(f"{where}: {self.source_column} is empty; leave the row out")
            found.append(Pair(str(row.get("id", index)), row[self.source_column], target))
        return found

    def example(self, fields):
        return Pair(str(fields.get("id", "")), fields[self.source_column])

    def texts(self, example):
        """Return the texts that `features` will tokenise; `featurize` tokenises many at once."""
        return [text for text in (example.source, example.target) if text is not None]

    def features(self, example, tokenizer, max_seq_length):
        self._check_length(max_seq_length)
        source, *target = (tokenizer.encode(text) for text in self.texts(example))
        feature = sequences.pack(tokenizer, source, None, max_seq_length)
        if target:
            packed = sequences.pack(tokenizer, target[0], None, self.max_target_length)
            feature["label_ids"] = packed["input_ids"]
            feature["truncated"] |= packed["truncated"]
        return [feature]

    def _check_length(self, max_seq_length):
        if self.max_target_length > max_seq_length:
            raise UserError(
                f"task_options.max_target_length={self.max_target_length} is above "
                f"max_seq_length={max_seq_length}: lower the one or raise the other"
            )

    def predictions(self, examples, features, outputs):
        """Return {"output": text} of each, from `outputs["output_ids"]`, -1 behind a text's end."""
        rows = [{"output_ids": row} for row in outputs["output_ids"]]
        texts = decode_outputs(self.tokenizer, rows)
        return [{"id": one.id, **text} for one, text in zip(examples, texts, strict=True)]

    def score(self, examples, predictions):
        from rouge_score import rouge_scorer, tokenizers

        words = tokenizers.DefaultTokenizer(use_stemmer=False)  # by itself it says so each time
        scorer = rouge_scorer.RougeScorer([*_ROUGE.values()], tokenizer=words)
        texts = list(self._texts(examples, predictions))
        rouge = [scorer.score(gold, found) for gold, found in texts]
        counts, long = self.counts(examples, predictions), longer_half(examples)
        bleu, short_bleu, long_bleu = (
            _bleu(part.sum(axis=0)) for part in (counts, counts[~long], counts[long])
        )
        means = {
            name: float(np.mean([one[theirs].fmeasure for one in rouge]))
            for name, theirs in _ROUGE.items()
        }
        halves = {"bleu_short": short_bleu, "bleu_long": long_bleu}
        return {"bleu": bleu, **means, **halves, "bleu_gap": long_bleu - short_bleu}

    def statistics(self, examples, predictions):
        """Return the statistics of BLEU (`counts`): of the longer half, then of the shorter."""
        counts = self.counts(examples, predictions)
        long = counts * longer_half(examples)[:, None]
        return {
            "bleu": ("bleu", counts),
            "bleu_short": ("bleu", counts - long),
            "bleu_long": ("bleu", long),
            "bleu_gap": ("bleu_gap", np.concatenate([long, counts - long], axis=1)),
        }

    def counts(self, examples, predictions) -> np.ndarray:
        """Return float64 [examples, 10], whose sums give BLEU: matches and n-grams of one to four
        words, words of the predictions and of the targets."""
        from sacrebleu.metrics import BLEU

        bleu, rows = BLEU(effective_order=True), []
        for gold, found in self._texts(examples, predictions):
            one = bleu.sentence_score(found, [gold])
            rows.append([*one.counts, *one.totals, one.sys_len, one.ref_len])
        return np.array(rows, np.float64).reshape(-1, 10)

    def baseline(self, train_examples, examples):
        """Return the source as it is."""
        return self.score(examples, [{"output": self.plain(one.source)} for one in examples])

    def write(self, path, predictions):
        path = self._output_path(path)
        with atomic_write(path) as file:
            file.writelines(" ".join(one["output"].split()) + "\n" for one in predictions)
        return [path]

    def _texts(self, examples, predictions):
        golds = self._golds(examples, "examples have no targets")
        for gold, prediction in zip(golds, predictions, strict=True):
            yield self.plain(gold), prediction["output"]

    def plain(self, text: str) -> str:
        """Return a text as the vocabulary spells it: perhaps in lower case, without accents."""
        options = self.tokenizer.options if self.tokenizer else {}
        if options.get("do_lower_case", getattr(self.tokenizer, "do_lower_case", False)):
            text = text.lower()
            keeps = options.get("strip_accents") is False
            text = text if keeps else reference.without_accents(text)
        return text


def longer_half(examples) -> np.ndarray:
    """Return bool [examples]: true for the half of the examples with the longer sources."""
    lengths = np.array([len(example.source.split()) for example in examples])
    ranks = np.argsort(np.argsort(lengths, kind="stable"), kind="stable")
    return ranks >= math.ceil(len(examples) / 2)


def _bleu(sums: np.ndarray) -> float:
    from sacrebleu.metrics import BLEU

    numbers = [int(number) for number in sums]
    found = BLEU.compute_bleu(numbers[:4], numbers[4:8], *numbers[8:], smooth_method="exp")
    return found.score / 100
