"""SQuAD's files, and the windows of its paragraphs."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from squad_questions import CONTEXT, IMPOSSIBLE, document, logits_of, question

from data_prep.tasks import get_task
from data_prep.tasks.featurize import featurize
from data_prep.tasks.question_answering import squad_examples
from data_prep.tasks.question_answering.squad_examples import SquadExample
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer
from official_bert.tokenization.windows import max_context_window, window_starts


def test_reading_keeps_all_answers(write, tmp_path):
    two = question()
    two["answers"].append({"text": "dog", "answer_start": CONTEXT.index("dog")})
    write("dev-v1.1.json", document(two))
    (example,) = get_task("squad_v1.1", data_dir=str(tmp_path)).examples("dev")
    assert example.answers == ("The big red dog", "dog")
    assert example.answer_start == CONTEXT.index("The big")


def test_training_questions_without_their_answer_are_counted(write, tmp_path, capsys):
    places = (("b", "cow", 2), ("c", "cat", 3), ("d", "THE ", 3))
    unfound = [question(id, answer=answer, start=start) for id, answer, start in places]
    write("train-v1.1.json", document(question("a"), *unfound))
    task = get_task("squad_v1.1", data_dir=str(tmp_path))
    assert [example.id for example in task.examples("train")] == ["a"]
    assert task.notes["train"]["answers_not_found"] == 3
    told = capsys.readouterr().err
    assert "3 training questions left out, whose answer is not in the paragraph; the first" in told
    assert 'question b, "cow" stated at 2, found nowhere (1 of them would be in another' in told


def test_one_window_has_the_answer_at_its_tokens(tokenizer):
    task = get_task("squad_v1.1")
    start = CONTEXT.index("red dog")
    example = SquadExample("q", "who lives in london", CONTEXT, ("red dog",), start)
    (feature,) = task.features(example, tokenizer, 64)
    ids = feature["input_ids"]
    pieces = ids[feature["start_positions"] : feature["end_positions"] + 1]
    assert tokenizer.decode(pieces) == "red dog"
    assert tokenizer.decode(ids[1:5]) == "who lives in london" and ids[5] == tokenizer.sep_id
    assert feature["context_start"] == 6
    assert feature["segment_ids"] == [0] * 6 + [1] * (len(ids) - 6)
    first = feature["start_positions"] - feature["context_start"]
    assert feature["token_starts"][first] == start
    assert set(feature["is_max_context"]) == {1}


def test_the_lecture_example_in_chinese(data_dir):
    tokenizer = BertTokenizer(data_dir / "vocab/bert-base-chinese-vocab.txt")
    context = "彼得是一個居住在歐洲的聰明男孩, 他每天都很快樂。"
    example = SquadExample("q", "彼得住在哪裡?", context, ("歐洲",), context.index("歐洲"))
    task = get_task("squad_v1.1")
    features = featurize(task, [example], tokenizer, 64)
    assert (features[0]["start_positions"], features[0]["end_positions"]) == (17, 18)
    (prediction,) = task.predictions([example], features, logits_of(features, 64))
    assert prediction["text"] == "歐洲"
    assert task.score([example], [prediction]) == {"f1": 1.0, "exact_match": 1.0}


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 80))
def test_windows_cover_every_token_and_each_token_has_one_best_window(length, room, stride):
    starts = window_starts(length, room, stride)
    ends = [min(start + room, length) for start in starts]
    covered = {t for start, end in zip(starts, ends, strict=True) for t in range(start, end)}
    assert covered == set(range(length))
    owner = max_context_window(length, starts, room)
    for token in range(length):
        # The rule as the original states it, window by window.
        best, best_score = None, None
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start <= token < end:
                score = min(token - start, end - 1 - token) + 0.01 * (end - start)
                if best_score is None or score > best_score:
                    best, best_score = index, score
        assert owner[token] == best


def test_a_text_of_a_million_tokens_takes_no_matrix():
    length, room = 1_000_000, 510  # windows x tokens would be 31 GB
    starts = window_starts(length, room, room // 2)
    tracemalloc.start()
    owner = max_context_window(length, starts, room)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (owner[0], owner[-1]) == (0, len(starts) - 1) and peak < 40e6


def test_windows_without_the_answer_point_at_cls(tokenizer):
    task = get_task("squad_v1.1", doc_stride=4)
    features = task.features(at_answer("red dog", context=CONTEXT), tokenizer, 12)
    spans = [(f["start_positions"], f["end_positions"]) for f in features]
    assert len(features) > 3 and spans.count((0, 0)) not in (0, len(features))
    for feature, (first, last) in zip(features, spans, strict=True):
        pieces = tokenizer.decode(feature["input_ids"][first : last + 1])
        assert (first, last) == (0, 0) or pieces == "red dog"
    places = [zip(f["token_starts"], f["is_max_context"], strict=True) for f in features]
    chosen = [start for pairs in places for start, best in pairs if best]
    assert len(chosen) == len(set(chosen))  # one window a token


SENTENCES = "Peter ran. The cat sat on the mat. The red dog lives in London. Paris is a city."


def at_answer(text, id="q", context=SENTENCES):
    return SquadExample(id, "who", context, (text,), context.index(text))


def test_a_paragraph_is_cut_to_one_window_with_the_answers_sentence(tokenizer):
    task = get_task("squad_v1.1", context="answer_sentence")
    begins = set()
    for number in range(20):
        example = at_answer("red dog", str(number))
        (feature,) = task.features(example, tokenizer, 22)
        first, last = feature["start_positions"], feature["end_positions"]
        assert tokenizer.decode(feature["input_ids"][first : last + 1]) == "red dog"
        shown = SENTENCES[feature["token_starts"][0] : feature["token_ends"][-1]]
        assert "The red dog lives in London." in shown and shown != SENTENCES
        assert set(feature["is_max_context"]) == {1} and feature["answer_cut"] == 0
        assert task.features(example, tokenizer, 22) == [feature]
        begins.add(shown.split()[1])
        indexed = [feature | {"example_index": 0}]
        predictions = task.predictions([example], indexed, logits_of(indexed, 22))
        assert task.score([example], predictions)["exact_match"] == 1.0
    assert begins == {"ran.", "cat", "red"}  # its place says nothing of the answer
    whole, ids = get_task("squad_v1.1"), "input_ids"
    found, expected = (t.features(example, tokenizer, 128)[0] for t in (task, whole))
    assert found[ids] == expected[ids]
    # A user's question has no answer to cut to.
    asked = task.example({"question": "who", "context": SENTENCES})
    assert task.features(asked, tokenizer, 22) == whole.features(asked, tokenizer, 22)


@given(st.sets(st.integers(1, 40), min_size=3, max_size=8), st.integers(1, 30), st.integers(0, 9))
def test_the_window_holds_the_answer_where_one_can(places, room, id):
    *inner, length = sorted(places)
    sentences, first, last = np.array([0, *inner]), inner[0] - 1, inner[id % len(inner)]
    start = squad_examples.window_at_answer(str(id), (first, last), sentences, length, room)
    if last - first < room:
        assert start <= first and last < start + room
    else:
        assert start in (0, first)
    begin = sentences[sentences <= first].max()
    end = min((s for s in sentences if s > last), default=length)
    if end - begin <= room < length:
        assert start <= begin and end <= start + room and start in sentences


def test_answers_that_no_window_holds_are_counted(write, tmp_path, tokenizer):
    unfound = question("b", answer="red cow", start=2)
    write("dev-v1.1.json", document(question("a", answer="red dog"), unfound))
    task = get_task("squad_v1.1", data_dir=str(tmp_path), context="answer_sentence")
    examples = task.examples("dev")
    assert task.notes["dev"] == {"questions": 2, "first_answers_not_found": 1}
    features = featurize(task, examples, tokenizer, 32)
    assert len(features) == 2 and features.notes["answers_cut"] == 1
    long = at_answer("The cat sat on the mat")
    assert featurize(task, [long], tokenizer, 9).notes["answers_cut"] == 1
    assert "answers_cut" not in featurize(get_task("squad_v1.1"), [long], tokenizer, 64).notes
    # The sentence is known, so the trivial answer begins there.
    assert task.baseline([], [at_answer("The red dog")])["exact_match"] == 1.0
    assert get_task("squad_v1.1").baseline([], [at_answer("The red dog")])["exact_match"] == 0.0


def test_sentences_begin_where_the_splitter_says():
    text = "  Peter ran.\u00a0 He\tsat.Then he left.\n"
    assert [text[place] for place in squad_examples.sentence_starts(text)][:2] == ["P", "H"]
    assert squad_examples.sentence_starts(" ") == ()


def test_long_questions_are_cut_and_counted(tokenizer):
    task = get_task("squad_v1.1", max_query_length=2)
    (feature,) = task.features(SquadExample("q", "who was the dog", "a cat"), tokenizer, 32)
    assert tokenizer.decode(feature["input_ids"][1:3]) == "who was"
    assert feature["truncated"] == 1 and "start_positions" not in feature
    with pytest.raises(UserError, match="leaves no room for text beside a question of"):
        task.features(SquadExample("q", "who was the dog", "a cat"), tokenizer, 5)


@pytest.mark.parametrize(("version", "answers"), [("1.1", []), ("2.0", [()])])
def test_unanswerable_questions_are_left_out_of_version_1(write, tmp_path, version, answers):
    write(f"train-v{version}.json", document(question(), IMPOSSIBLE))
    found = get_task(f"squad_v{version}", data_dir=str(tmp_path)).examples("train")
    assert [example.answers for example in found] == [("The big red dog",), *answers]


NO_TEXT = document(question()).replace(json.dumps(CONTEXT), "null")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"dev-v1\.1\.json is empty"),
        ('{"data": [', r"dev-v1\.1\.json: not valid JSON \(.*line 1"),
        ('{"version": 1}', "is it SQuAD's format .* The columns are version"),
        (b'{"data":\n"\xff"}', r"dev-v1\.1\.json line 2: byte 0xff at column 2 is not UTF-8"),
        (document(), "no question"),
        (document(question(answers=[])), "no question with an answer"),
        (document("q1"), r"article 1 paragraph 1: qas\[0\] must be a JSON object, not \"q1\""),
        (NO_TEXT, r"dev-v1\.1\.json article 1 paragraph 1: context must be a text, not null"),
    ],
)
def test_errors(write, tmp_path, content, message):
    write("dev-v1.1.json", content)
    with pytest.raises(UserError, match=message):
        get_task("squad_v1.1", data_dir=str(tmp_path)).examples("dev")


def test_only_test_files_may_lack_answers(write, tmp_path):
    for split in ("train", "dev", "test"):
        write(f"{split}-v2.0.json", document({"id": "q", "question": "?", "answers": None}))
    task = get_task("squad_v2.0", data_dir=str(tmp_path))
    for split in ("train", "dev"):
        with pytest.raises(UserError, match=rf"{split}-v2\.0\.json question q has no answers"):
            task.examples(split)
    assert task.examples("test")[0].answers is None


def test_one_file_is_the_training_file(write, tmp_path):
    path = write("mine.json", document(question()))
    write("other.json", document(question("q2")))
    task = get_task("squad_v1.1", data_dir=path)
    assert [example.id for example in task.examples("train")] == ["q1"]
    for split in ("dev", "test"):
        with pytest.raises(UserError, match=f"the training file; set {split}_file"):
            task.examples(split)
    both = get_task("squad_v1.1", data_dir=path, dev_file="other.json")
    assert [example.id for example in both.examples("dev")] == ["q2"]


class OtherTokenizer:
    """Another vocabulary's answers, counted."""

    cls_id, sep_id, separators, between, calls = 1, 2, 1, [2], 0

    def encode(self, text):
        return [3]

    def encode_with_offsets(self, text):
        self.calls += 1
        return [7], [(0, 5)]


def test_a_paragraph_is_remembered_for_its_tokenizer(tokenizer):
    task, other = get_task("squad_v1.1"), OtherTokenizer()
    examples = [SquadExample(id, "who", CONTEXT) for id in "ab"]
    ours = [task.features(example, tokenizer, 64) for example in examples]
    theirs = [task.features(example, other, 64) for example in examples]
    assert other.calls == 1 and theirs[0][0]["input_ids"] == [1, 3, 2, 7, 2]
    # The cache keeps its tokenizer alive, so that no later one can have its identity.
    assert task._last_context.tokenizer is other
    assert task.features(examples[0], tokenizer, 64) == ours[0]
    assert pickle.loads(pickle.dumps(task)).features(examples[0], tokenizer, 64) == ours[0]


def test_a_task_that_has_made_features_goes_to_worker_processes(tokenizer):
    task = get_task("squad_v1.1")
    featurize(task, [SquadExample("a", "who", CONTEXT)], tokenizer, 64)
    assert len(pickle.dumps(task)) < 1000  # no tokenizer and no paragraph with it


@pytest.mark.parametrize(
    ("context", "length", "least"), [("paragraph", 192, 0.98), ("answer_sentence", 64, 0.97)]
)
def test_real_questions_at_their_labels_score_nearly_one(data_dir, context, length, least):
    tokenizer = BertTokenizer(data_dir / "vocab/bert-base-uncased-vocab.txt")
    options = {"context": context, "max_query_length": 24}
    task = get_task("squad_v1.1", data_dir=str(data_dir / "squad_v1.1"), **options)
    examples = task.examples("dev")
    if context == "answer_sentence":
        assert task.notes["dev"] == {
            "questions": 10_565, "first_answers_not_found": 0,
            "answers_moved_to_the_nearest_place": 3,
        }  # fmt: skip
    examples = examples[::40]
    features = featurize(task, examples, tokenizer, length)
    if context == "answer_sentence":  # one window a question
        assert len(features) == len(examples) and features.notes["answers_cut"] <= 2
    predictions = task.predictions(examples, features, logits_of(features, length))
    # The rest are answers inside a WordPiece, or stated at a wrong character.
    assert task.score(examples, predictions)["exact_match"] > least
