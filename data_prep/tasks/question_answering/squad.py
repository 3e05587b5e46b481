"""SQuAD 1.1 and 2.0 (sections 4.2 and 4.3): find the answer to a question in a paragraph.

Question and paragraph are one sequence; a paragraph too long for it is cut into overlapping
windows. Tokens keep their characters, so an answer is always a piece of the original text.

`context="answer_sentence"` is another task than the paper's, made from the same questions: each
paragraph is cut to one window around the sentence of the (first) answer. With windows of 64 tokens,
32 apart, it costs a fifth (one window instead of 5.4), and it is easier, since there is less text
to search. The gold answers and the metrics are the same.
"""

import collections
import dataclasses
import functools
import json
import os
import sys

import numpy as np

from data_prep.tasks import split_files
from data_prep.tasks.question_answering import squad_examples, squad_metrics
from data_prep.tasks.question_answering.squad_examples import (
    LastContext,
    SquadExample,
    find_answer,
    from_tfds,
    read,
    sentence_starts,
    token_span,
    window_at_answer,
)
from data_prep.tasks.split_files import HoldingOut
from data_prep.tasks.task import TfdsTask, head_of
from official_bert import span_answers
from official_bert.common.errors import UserError, check_choice, first_of
from official_bert.common.files import atomic_write
from official_bert.common.json_files import shorten
from official_bert.tokenization.windows import beside_question


class Squad(HoldingOut, TfdsTask):
    """Reading comprehension by one start and one end score a token."""

    unit, gold = "questions", "answers"
    baseline_is = "answers with the first words of the passage"
    input_fields = ("question", "context")
    prediction_file = "predictions.json"
    reading_options = ("f1_by",)
    about_windows = "passages are read in as many windows as they need, doc_stride apart"
    # Mean pieces in SQuAD's training data, by vocabularies of 8,192 to 30,522 pieces.
    mean_passage, mean_question = 157, 13

    @classmethod
    def mean_windows(cls, length, options):
        if options.get("context") == "answer_sentence":
            return 1.0
        room = length - 3 - cls.mean_question
        return 1 + max(0, cls.mean_passage - room) / options.get("doc_stride", 128)

    def __init__(
        self,
        data_dir: str = "",
        *,
        version: str = "1.1",
        train_file: str | list[str] = "",
        context: str = "paragraph",
        doc_stride: int = 128,
        max_query_length: int = 64,
        n_best_size: int = 20,
        max_answer_length: int = 30,
        null_score_diff_threshold: float = 0.0,
        f1_by: str = "words",
        **options,
    ):
        """
        Args:
          data_dir: folder of the official JSON files, or one file, which is then the training file;
            empty: TFDS, which has train and dev.
          train_file: its name there, if it is not the official one; several as a list, or with
            commas between.
          context: "paragraph", or "answer_sentence": questions with answers, in training and dev
            alike, get one window with the sentence of the first answer (version 1.1 only).
          doc_stride: tokens from the start of one window to the start of the next.
          max_query_length: longer questions are cut off.
          null_score_diff_threshold: version 2.0 gives no answer where [CLS] outscores the best span
            by more than this; `best_threshold` finds it on dev.
          f1_by: units that F1 and exact match compare: "words" as SQuAD's script, "characters" as
            DRCD's, or "cmrc2018" as CMRC 2018's; see `squad_metrics`.
        """
        super().__init__(data_dir, train_file=train_file, **options)
        check_choice("version", version, ("1.1", "2.0"))
        check_choice("context", context, ("paragraph", "answer_sentence"))
        check_choice("f1_by", f1_by, squad_metrics.BY)
        if context == "answer_sentence" and version == "2.0":
            raise UserError(
                "context=answer_sentence is for version 1.1: a question without an answer has no "
                "sentence to cut to"
            )
        self.version, self.context, self.f1_by = version, context, f1_by
        self.doc_stride, self.max_query_length = doc_stride, max_query_length
        self.n_best_size, self.max_answer_length = n_best_size, max_answer_length
        self.null_score_diff_threshold = null_score_diff_threshold
        for name in ("doc_stride", "n_best_size", "max_answer_length", "max_query_length"):
            least = 0 if name == "max_query_length" else 1
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)}; it is at least {least}")
        self._last_context = LastContext()

    @property
    def metrics(self) -> tuple[str, ...]:
        if self.version == "1.1":
            return ("f1", "exact_match")
        return ("best_f1", "best_exact_match", "f1", "exact_match")

    @property
    def head(self) -> dict:
        return head_of("span", problem="span", num_labels=2)

    @property
    def scoring(self) -> str:
        return f"F1 by {squad_metrics.BY[self.f1_by]}"

    def settings(self) -> dict:
        names = ("context", "doc_stride", "max_query_length", "n_best_size", "max_answer_length")
        options = {name: getattr(self, name) for name in (*names, "f1_by")}
        return options | {"null_score_diff_threshold": self.null_score_diff_threshold}

    def _read_split(self, split: str) -> list[SquadExample]:
        """Read a split; training questions whose answer is not in the paragraph are left out.

        Examples are in the order of the files. TFDS does not keep it; its examples are sorted by
        paragraph and id.

        Raises:
          UserError: a file cannot be read, or a training or dev question has no answers.
        """
        examples, source = self._read(split)
        examples, repeated = squad_examples.numbered(examples)
        notes = {"questions": len(examples)}
        if repeated:
            notes["repeated_ids_numbered"] = repeated
            self._say(
                f"{repeated} of {len(examples)} questions have an id that is there before in "
                f"{source}; they are numbered (ID#2)"
            )
        if split == "train":
            examples = self._with_answers(examples, notes)
        elif self.context == "answer_sentence":
            # They get the sentence at the place that the file states.
            unfound = [e for e in examples if e.answers and find_answer(e) is None]
            notes["first_answers_not_found"] = len(unfound)
        if moved := sum(squad_examples.is_moved(e) for e in examples if e.answers):
            notes["answers_moved_to_the_nearest_place"] = moved
        self.notes[split] = notes
        if split != "train" and self.f1_by == "words":
            answers = [answer for e in examples for answer in (e.answers or ())[:1]]
            self._say(squad_metrics.warning(answers))
        # Version 2.0 scores questions without an answer as well.
        if not examples or (
            self.version == "1.1" and split != "test" and not any(e.answers for e in examples)
        ):
            raise UserError(f"{source}: no question with an answer")
        return examples

    def _with_answers(self, examples: list[SquadExample], notes: dict) -> list[SquadExample]:
        """Return the questions to train on; those that are left out are counted in `notes`."""
        if self.version == "1.1":
            answerable = [example for example in examples if example.answers]
            notes["unanswerable_left_out"] = len(examples) - len(answerable)
            examples = answerable
        unfound = [e for e in examples if e.answers and find_answer(e) is None]
        notes["answers_not_found"] = len(unfound)
        if not unfound:
            return examples
        texts = [(e.answers[0].strip().lower(), e.context.lower()) for e in unfound]
        in_case = sum(bool(answer) and answer in context for answer, context in texts)
        hint = f" ({in_case} of them would be in another case; write them as there)"
        self._say(
            f"{len(unfound)} training questions left out, whose answer is not in the paragraph; "
            f"the first: question {unfound[0].id}, {shorten(unfound[0].answers[0], 40)} stated at "
            f"{unfound[0].answer_start}, found nowhere" + hint * bool(in_case)
        )
        left_out = {example.id for example in unfound}
        return [example for example in examples if example.id not in left_out]

    def example(self, fields: dict) -> SquadExample:
        return SquadExample(str(fields.get("id", "")), fields["question"], fields["context"])

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        return (("paragraphs",), self.input_fields)

    def rows_and_examples(self, table):
        if table.format in ("lines", "tsv", "csv"):  # their columns are texts, even the answers
            yield from super().rows_and_examples(table)
            return
        for row, example in squad_examples.rows_of(table):
            empty = not (example.question + example.context).strip()
            yield [row], None if empty else dataclasses.replace(example, answers=None)

    def texts(self, example: SquadExample) -> list[str]:
        """Return the texts that `features` gives to `tokenizer.encode`; paragraphs need offsets
        too."""
        return [example.question]

    def features(self, example: SquadExample, tokenizer, max_seq_length: int) -> list[dict]:
        """Return the features of `windows.beside_question`, with the answer's positions in
        training.

        They are `start_positions` and `end_positions`.

        A window without the whole answer, and a question without one, point at [CLS]. Windows cut
        to the answer's sentence also have `answer_cut`, 1 where they lack a part of the first
        answer.
        """
        question = tokenizer.encode(example.question)
        cut = question[: self.max_query_length]
        passage = ids, starts, ends = self._last_context.encode(example.context, tokenizer)
        span = token_span(find_answer(example), starts, ends) if example.answers else None
        only = None
        if self.context == "answer_sentence" and example.answers:
            stated = int(np.searchsorted(ends, example.answer_start, side="right"))
            sentences = np.searchsorted(starts, sentence_starts(example.context))
            answer = span or (stated, stated)
            only = functools.partial(window_at_answer, example.id, answer, sentences, len(ids))
        features, how = [], (max_seq_length, self.doc_stride, only)
        for feature, window in beside_question(tokenizer, cut, passage, *how):
            feature["truncated"] = int(len(cut) < len(question))
            if example.answers is not None:
                inside = span is not None and window.start <= span[0] and span[1] < window.stop
                offset = feature["context_start"] - window.start
                feature["start_positions"] = span[0] + offset if inside else 0
                feature["end_positions"] = span[1] + offset if inside else 0
                if only:
                    feature["answer_cut"] = int(not inside)
            features.append(feature)
        return features

    def clusters(self, examples: list) -> list:
        return [example.title or example.context for example in examples]

    def predictions(self, examples, features, outputs) -> list[dict]:
        """Return the results of `span_answers.answer`."""
        windows = collections.defaultdict(list)
        rows = zip(features, outputs["start_logits"], outputs["end_logits"], strict=True)
        for feature, start_logits, end_logits in rows:
            windows[feature["example_index"]].append(
                (feature, np.asarray(start_logits), np.asarray(end_logits))
            )
        return [
            span_answers.answer(
                example.id,
                example.context,
                windows[index],
                self.n_best_size,
                self.max_answer_length,
                may_be_null=self.version == "2.0",
                threshold=self.null_score_diff_threshold,
            )
            for index, example in enumerate(examples)
        ]

    def score(self, examples, predictions) -> dict[str, float]:
        """Return the official metrics.

        Version 2.0 also has them by kind of question, and the best over thresholds.

        Questions without a prediction are wrong in 1.1 and left out, with a message, in 2.0.
        """
        golds = self._answers(examples)
        texts = {prediction["id"]: prediction["text"] for prediction in predictions}
        if self.version == "1.1":
            return squad_metrics.evaluate_v1(texts, golds, self.f1_by)
        missing = [id for id in golds if id not in texts]
        if missing:
            self._say(
                f"{len(missing)} questions have no prediction and are left out "
                f"({first_of(missing, 3)})"
            )
        scores = squad_metrics.evaluate_v2(texts, golds, self.f1_by)
        if all("null_odds" in prediction for prediction in predictions):
            for metric in ("f1", "exact_match"):
                best, threshold = self.best_threshold(examples, predictions, metric)
                scores |= {f"best_{metric}": best, f"best_{metric}_threshold": threshold}
        return scores

    def best_threshold(self, examples, predictions, metric: str = "f1") -> tuple[float, float]:
        """Return (score, `null_score_diff_threshold`) of the best threshold on examples (version
        2.0)."""
        return squad_metrics.best_threshold(
            {prediction["id"]: prediction["best_text"] for prediction in predictions},
            {prediction["id"]: prediction["null_odds"] for prediction in predictions},
            self._answers(examples),
            metric,
            self.f1_by,
        )

    def tune(self, examples, predictions) -> list[dict]:
        """Set `null_score_diff_threshold` to the best for F1 on these examples (version 2.0)."""
        if self.version == "1.1":
            return predictions
        _, self.null_score_diff_threshold = self.best_threshold(examples, predictions)
        return [
            span_answers.decide(prediction, self.null_score_diff_threshold)
            for prediction in predictions
        ]

    def baseline(self, train_examples, examples) -> dict[str, float]:
        """Return the scores of the best baseline here: a number of first words, or (2.0) no answer.

        The words are the paragraph's; where paragraphs are cut, they begin with the answer's
        sentence.
        """
        results = []
        beginnings = [self._beginning(example) for example in examples]
        for texts in span_answers.first_words(beginnings, or_nothing=self.version == "2.0"):
            scores = self.score(
                examples, [{"id": e.id, "text": t} for e, t in zip(examples, texts, strict=True)]
            )
            # With one answer for all questions a threshold has nothing to choose.
            results.append({name: scores[name.removeprefix("best_")] for name in self.metrics})
        return max(results, key=lambda scores: scores[self.metrics[0]])

    def write(self, path, predictions) -> list[str]:
        """Write the original's three files by question id: predictions, n-best and (2.0) null
        odds."""
        path = self._output_path(path)
        folder, name = os.path.split(path)
        paths = []
        contents = span_answers.official(predictions, name, may_be_null=self.version == "2.0")
        for file_name, content in contents.items():
            paths.append(os.path.join(folder, file_name))
            with atomic_write(paths[-1]) as file:
                json.dump(content, file, indent=4, ensure_ascii=False)
                file.write("\n")
        return paths

    def analysis(self, examples, predictions, mistakes: int = 20) -> dict:
        """Return {"mistakes": wrong answers with question and golds, the highest probability
        first}."""
        texts = {p["id"]: p["text"] for p in predictions}
        scores = squad_metrics.question_scores(texts, self._answers(examples), self.f1_by)
        wrong = [
            (example, prediction)
            for example, prediction in zip(examples, predictions, strict=True)
            if scores[example.id][0] == 0
        ]
        wrong.sort(key=lambda pair: -pair[1]["probability"])
        return {
            "mistakes": [
                {
                    "id": example.id,
                    "text": f"{example.question}\n{example.context}",
                    "gold": list(dict.fromkeys(example.answers)) or [""],
                    "predicted": prediction["text"],
                    "confidence": prediction["probability"],
                    "f1": scores[example.id][1],
                }
                for example, prediction in wrong[:mistakes]
            ]
        }

    def _say(self, message: str) -> None:
        if message:
            print(f"{self.name}: {message}", file=sys.stderr)

    def _answers(self, examples) -> dict[str, list[str]]:
        golds = self._golds(examples, "questions have no answers")
        return {example.id: list(gold) for example, gold in zip(examples, golds, strict=True)}

    def _beginning(self, example: SquadExample) -> str:
        if self.context == "paragraph":
            return example.context
        begin = (find_answer(example) or (example.answer_start, 0))[0]
        starts = sentence_starts(example.context)
        return example.context[max((s for s in starts if s <= begin), default=0) :]

    def _read(self, split: str) -> tuple[list[SquadExample], str]:
        """Return all questions of a split, and the name of their source."""
        if not self.reads_tfds:
            paths = self._paths(self.file_of(split))
            examples = [e for path in paths for e in read(path, need_answers=split != "test")]
            source = ", ".join(paths)
            return self._part(split, examples, [e.context for e in examples], source), source
        name = f"squad/v{self.version}"
        rows, _ = split_files.read_tfds(
            name, split, self.tfds_dir, "the folder of the official SQuAD files"
        )
        return sorted(map(from_tfds, rows), key=lambda e: (e.context, e.id)), f"TFDS {name}"

    def _paths(self, split: str) -> list[str]:
        named = self.files[split]
        names = named.split(",") if isinstance(named, str) else named
        return [self._path(split, name.strip()) for name in names or [""]]

    def _usual_names(self, split: str) -> list[str]:
        endings = ("json", "jsonl", "parquet")
        return [f"{split}-v{self.version}.json", *(f"{split}.{ending}" for ending in endings)]
