"""Questions of strangers' files: every layout, every field's type, ids that repeat."""

import json
import re

import pytest

from data_prep.tasks import get_task
from data_prep.tasks.question_answering import squad_examples, squad_metrics
from data_prep.tasks.question_answering.squad_examples import SquadExample
from official_bert.common.errors import UserError

CONTEXT = "The river rises in the hills. The town of Mill lies on the river."
FLAT = [
    {"id": "1", "context": CONTEXT, "question": "q?",
     "answers": {"text": ["in the hills"], "answer_start": [16]}},
    {"id": "2", "context": CONTEXT, "question": "r?",
     "answers": {"text": ["Mill"], "answer_start": [42]}},
]  # fmt: skip


def nested(*questions, context=CONTEXT):
    paragraphs = [{"context": context, "qas": list(questions)}]
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


def question(id="1", text="in the hills", start=16, **more):
    return {"id": id, "question": "q?", "answers": [{"text": text, "answer_start": start}]} | more


SQUAD = nested(question(), question("2", "Mill", 42) | {"question": "r?"})
LAYOUTS = {
    "rows.jsonl": "\n".join(map(json.dumps, FLAT)),
    "rows.json": "\n".join(map(json.dumps, FLAT)),
    "array.json": json.dumps(FLAT),
    "flat.json": json.dumps({"data": FLAT}),
    "columns.json": json.dumps({name: [row[name] for row in FLAT] for name in FLAT[0]}),
    "squad.json": SQUAD,
    "articles.jsonl": json.dumps(json.loads(SQUAD)["data"][0]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_read_and_answered_question_for_question(write, name):
    path = write(name, LAYOUTS[name])
    found = squad_examples.read(path, need_answers=True)
    assert [(e.id, e.question, e.answers, e.answer_start) for e in found] == [
        ("1", "q?", ("in the hills",), 16), ("2", "r?", ("Mill",), 42),
    ]  # fmt: skip
    rows = get_task("squad_v1.1").inputs(path).rows
    asked = [(rows[0]["id"], e.question, e.context, e.answers) for rows, e in rows]
    assert asked == [("1", "q?", CONTEXT, None), ("2", "r?", CONTEXT, None)]


def test_parquet_of_datasets(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(FLAT), tmp_path / "a.parquet")
    found = squad_examples.read(str(tmp_path / "a.parquet"), need_answers=True)
    assert [e.answers for e in found] == [("in the hills",), ("Mill",)]


def test_paragraphs_alone_are_squads_json(write):
    paragraph = json.loads(nested(question()))["data"][0]["paragraphs"][0]
    for content in ([paragraph] * 2, {"data": [paragraph]}, {"paragraphs": [paragraph]}):
        path = write("a.json", json.dumps(content))
        assert {e.answers for e in squad_examples.read(path)} == {("in the hills",)}
        rows = get_task("squad_v1.1").inputs(path).rows
        assert {example.question for _, example in rows} == {"q?"}


@pytest.mark.parametrize("pair", [f"q?\t{CONTEXT}\n", f"question,context\nq?,{CONTEXT}\n"])
def test_questions_of_a_table(write, pair):
    ((_, example),) = get_task("squad_v1.1").inputs(write("a.txt", pair)).rows
    assert (example.question, example.context) == ("q?", CONTEXT)


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_ids_that_repeat_are_numbered(write, tmp_path, version, capsys):
    content = nested(question("1"), question("1", "Mill", 42), question("1#2"), question("1"))
    write("a.json", content)
    task = get_task(f"squad_v{version}", str(tmp_path), dev_file="a.json")
    examples = task.examples("dev")
    assert [example.id for example in examples] == ["1", "1#3", "1#2", "1#4"]
    assert task.notes["dev"]["repeated_ids_numbered"] == 2
    assert "2 of 4 questions have an id that is there before" in capsys.readouterr().err
    same = {"text": "in the hills", "best_text": "in the hills", "null_odds": -1.0, "nbest": []}
    predictions = [{"id": example.id, **same} for example in examples]
    assert task.score(examples, predictions)["exact_match"] == 0.75
    task.write(str(tmp_path), predictions)
    assert len(json.loads((tmp_path / "predictions.json").read_text())) == 4


def test_ids_that_repeat_over_joined_files(write, tmp_path):
    write("en.json", nested(question()))
    write("zh.json", nested(question()))
    task = get_task("squad_v1.1", str(tmp_path), dev_file="en.json,zh.json")
    assert [example.id for example in task.examples("dev")] == ["1", "1#2"]


@pytest.mark.parametrize("value", ["false", "False", False, None])
def test_a_question_that_has_an_answer(write, value):
    (example,) = squad_examples.read(write("a.json", nested(question(is_impossible=value))))
    assert example.answers == ("in the hills",)


@pytest.mark.parametrize("value", ["true", "TRUE", True])
@pytest.mark.parametrize("answers", [{"answers": []}, {"answers": None}, {}])
def test_a_question_without_an_answer(write, value, answers):
    asked = {"id": "1", "question": "q?", "is_impossible": value, **answers}
    (example,) = squad_examples.read(write("a.json", nested(asked)), need_answers=True)
    assert example.answers == () and example.answer_start == -1


TWO = [*question()["answers"], {"text": "Mill", "answer_start": "42"}]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (question(is_impossible="no"), 'question 1: is_impossible must be true or false, not "no"'),
        (question(is_impossible=1), "question 1: is_impossible must be true or false, not 1"),
        (question(is_impossible=True), "question 1: is_impossible is true, and there are answers"),
        (question(id=True), "paragraph 1: id must be a text or a whole number, not true"),
        (question(id=None), "paragraph 1: id must be a text or a whole number, not null"),
        ({"question": "q?", "answers": []}, "paragraph 1: the field id is missing"),
        ({"id": "1", "answers": []}, "question 1: the field question is missing"),
        (question(start=16.0), r"answers\[0\]: answer_start must be a whole number, not 16.0"),
        (question(start=True), r"answers\[0\]: answer_start must be a whole number, not true"),
        (question(text=3), r"question 1: answers\[0\]: text must be a text, not 3"),
        (question(answers="x"), 'question 1: answers must be a list, not "x"'),
        (question(answers=["x"]), r"answers\[0\] must be a JSON object"),
        (question(answers=TWO), r"answers\[1\]: answer_start must be a whole number"),
        (question(answers={"text": ["x"], "answer_start": [0, 1]}), "1 text and 2 answer_start"),
        (question(answers={"text": ["x"], "answer_start": ["0"]}), r"answer_start\[0\] must be"),
        ({"id": "1", "question": "q?", "is_impossible": False, "answers": []}, "has no answers"),
        ({"id": "1", "question": "q?"}, "has no answers"),
    ],
)
def test_fields_of_another_type(write, asked, message):
    with pytest.raises(UserError, match=message):
        squad_examples.read(write("a.json", nested(asked)), need_answers=True)


@pytest.mark.parametrize(("stated", "found"), [(18, 21), (20, 21), (1, 0), (19, 21), (4, 0)])
def test_an_answer_that_is_off_goes_to_the_nearest_place(stated, found):
    context = "京城在北方，很多人喜欢京剧，也有人说他来自京城和上海。"  # it is at 0 and at 21
    example = SquadExample("q", "?", context, ("京城",), stated)
    assert squad_examples.find_answer(example) == (found, found + 2)
    assert squad_examples.is_moved(example)
    right = SquadExample("q", "?", context, ("京城",), 21)
    assert squad_examples.find_answer(right) == (21, 23) and not squad_examples.is_moved(right)


@pytest.mark.parametrize(
    ("answer", "stated", "found"),
    [
        ("Mill", -1, 54), ("Mill", 0, 54), ("Mill", 9999, 54), ("Mill", 20, 54),
        ("by the river", -5, 59),  # of other blanks
        ("Zoé", -1, 39), ("Zoé", 70, 49),
        ("rise", -1, 74), ("the", -1, 21),  # a word before a part of one
        ("town", 20, None), (" ", 3, None),
    ],
)  # fmt: skip
def test_an_answer_stated_far_off_is_found(answer, stated, found):
    context = "🙂 The river rises in the hills. Café 🙂 Zoé's, no Zoé. Mill by  the\nriver; rise."
    example = SquadExample("q", "?", context, (answer,), stated)
    place = squad_examples.find_answer(example)
    assert (place and place[0]) == found
    if found is not None:
        assert context[slice(*place)].split() == answer.split()
        assert squad_examples.is_moved(example)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_an_answer_may_be_stated_in_bytes_or_units_of_utf_16(encoding):
    context = f"{'🙂' * 40} Ann {'sat by the river ' * 3}Ann {'left it ' * 9}Ann."
    assert len(context) > 170
    for place in (match.start() for match in re.finditer("Ann", context)):
        stated = len(context[:place].encode(encoding)) // (1 if encoding == "utf-8" else 2)
        example = SquadExample("q", "?", context, ("Ann",), stated)
        assert squad_examples.find_answer(example) == (place, place + 3)


@pytest.mark.parametrize(
    "answers",
    [
        [{"text": "Mill"}],
        [{"text": "Mill", "answer_start": None}],
        {"text": ["Mill"]},
        {"text": ["Mill"], "answer_start": None},
        {"text": ["Mill"], "answer_start": []},
        {"text": ["Mill"], "answer_start": [None]},
    ],
)
def test_an_answer_that_is_stated_nowhere_is_found(write, answers):
    (example,) = squad_examples.read(write("a.json", nested(question(answers=answers))))
    assert example.answer_start == -1 and squad_examples.find_answer(example) == (42, 46)
    assert squad_examples.is_moved(example)


def test_moved_answers_are_counted(write, tmp_path):
    content = nested(question(), question("2", start=17), question("3", "Mill", 42))
    for split in ("train", "dev"):
        write(f"{split}.json", content)
        task = get_task("squad_v1.1", str(tmp_path))
        task.examples(split)
        assert task.notes[split]["answers_moved_to_the_nearest_place"] == 1


@pytest.mark.parametrize("by", ["characters", "cmrc2018"])
def test_chinese_is_scored_by_characters(by):
    short, whole = "越南罗马天主教", "越南罗马天主教枢机"
    assert squad_metrics.f1(short, whole) == 0.0
    assert squad_metrics.f1(short, whole, by) == pytest.approx(0.875)
    assert squad_metrics.exact_match(f"{whole}。", whole, by) == 1.0
    assert squad_metrics.f1("GPT-2 模型", "gpt-2 模型", by) == 1.0


def test_cmrc_counts_the_longest_run_and_drcd_the_bag():
    one, other = "北京和上海", "上海和北京"
    assert squad_metrics.f1(one, other, "characters") == 1.0
    assert squad_metrics.f1(one, other, "cmrc2018") == pytest.approx(0.4)


def test_the_report_says_how_f1_is_counted(write, tmp_path, capsys):
    context = "范廷颂是越南罗马天主教枢机。"
    write("dev.json", nested(question(text="越南罗马天主教枢机", start=4), context=context))
    words = get_task("squad_v1.1", str(tmp_path))
    words.examples("dev")
    assert "--task_options.f1_by=characters counts as DRCD" in capsys.readouterr().err
    task = get_task("squad_v1.1", str(tmp_path), f1_by="characters")
    examples = task.examples("dev")
    assert "f1_by" not in capsys.readouterr().err
    answer = [{"id": "1", "text": "越南罗马天主教"}]
    assert task.score(examples, answer) == {"f1": pytest.approx(0.875), "exact_match": 0.0}
    assert "DRCD" in task.scoring and "SQuAD" in words.scoring
