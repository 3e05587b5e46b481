"""Inputs of a user to a tagger: a token a line, rows with lists of words, or running text."""

from data_prep.corpus import parquet_files
from data_prep.tasks import conll_files, look, reading, token_lines
from data_prep.tasks.task import Inputs
from official_bert.common.errors import UserError

_WANTED = (*((name,) for name in conll_files.WORDS), ("text",))
_FEW = 5  # lines of texts may have the same number of words by chance


def read(task, path: str, format: str, layout, single: bool) -> Inputs:
    """The examples of a file without their tags, and the rows that are answered.

    Documents are those that `conll_files.read` finds, so that answers are those that are scored.

    Args:
      task: makes examples of running text.
      path: a file, "-" for standard input.
      format: of `look.FORMATS`, where the user says it.
      layout: `conll_files.Layout`.
      single: whether every sentence is an example of its own.

    Raises:
      UserError: as `look.look`, or nothing shows whether a line is a word or a text.
    """
    lines = None
    if path == "-" or not parquet_files.is_parquet(path):
        lines = reading.Lines(path)
        is_text = not format and not look.json_format(lines, path)
        if format == "conll" or (is_text and _has_a_token_a_line(lines, path, layout)):
            return _of_token_lines(token_lines.TokenLines(lines, layout, tagged=False), single)
    wanted = ((layout.word_column,),) if layout.word_column else _WANTED
    table = look.look(path, wanted, texts=True, format=format, lines=lines)
    if table.found == ("text",):
        return Inputs(task.asked(table), table)
    return Inputs(_of_rows(table, single), table)


def answers(rows: list[dict], prediction: dict, layout) -> list[dict]:
    """The answer to each row of an example: the part about its sentences."""
    names = (layout.word_column,) if layout.word_column else conll_files.WORDS
    found, first = [], 0
    for row in rows:
        words = next((row[name] for name in names if isinstance(row.get(name), list)), [])
        end = first + (len(_sentences(words)) if row.keys() & set(names) else bool(row))
        answer = {**prediction, "entities": []}
        for name in {"words", "tags", "probabilities"} & prediction.keys():
            answer[name] = prediction[name][first:end]
        for phrase in prediction["entities"]:
            if first <= phrase["sentence"] < end:
                answer["entities"].append({**phrase, "sentence": phrase["sentence"] - first})
        found.append(answer)
        first = end
    return found


def _sentences(words: list) -> list:
    """Of a list of words, or of lists of them."""
    return words if not words or isinstance(words[0], list) else [words]


def _of_token_lines(found, single: bool) -> Inputs:
    def rows():
        for index, document in enumerate(found.documents):
            asked = [
                {"tokens": [word for _, word, _ in sentence], "document": str(index)}
                for sentence in document
            ]
            for part in [[row] for row in asked] if single else [asked]:
                words = tuple(tuple(row["tokens"]) for row in part)
                yield part, conll_files.TaggedDocument(str(index), words)

    return Inputs(rows(), found)


def _of_rows(table, single: bool):
    (name,) = table.found
    rows = ((number, row or {}) for number, row in table.rows(blank_lines=True))
    for group in ([row] for row in rows) if single else conll_files.by_document(rows):
        sentences = []
        for number, row in group:
            where = f"{table.where(number)}: {name}"
            words = row.get(name, [])
            if not isinstance(words, list):
                conll_files.check_words(words, where)
            for sentence in _sentences(words):
                sentences.append(tuple(conll_files.check_words(sentence, where)))
        number, row = group[0]
        document = conll_files.TaggedDocument(str(row.get("id", number)), tuple(sentences))
        yield [row for _, row in group], document if sentences else None


def _has_a_token_a_line(lines, path: str, layout) -> bool:
    """Whether the first lines are tokens in columns, and not texts.

    Raises:
      UserError: they may be either.
    """
    # A column of lines has a number.
    if look.ending(path) in look.TOKENS or layout.word_column.lstrip("-").isdigit():
        return True
    rows = [token_lines.fields_of(line, lines.first) for line in lines.first if line.strip()]
    rows = [fields for fields in rows if not fields[0].startswith("#")]
    if any(fields[0] == "-DOCSTART-" for fields in rows):
        return True
    header = rows.pop(0) if len(rows) > 1 and token_lines.is_header(rows[0]) else []
    counts = {len(fields) for fields in rows}
    if _has_tags(rows, layout.column):
        return True
    if len(counts) != 1 or "text" in header:
        return False
    if counts != {1} and all(fields[0][:1].isdigit() for fields in rows) and rows[0][0] in "01":
        return True
    if len(rows) < (2 if "" in lines.first[:-1] and len(rows) > 2 else _FEW):
        return False
    raise UserError(
        f"{lines.name}: is every line a word, or a text? All have as many words. --format=conll "
        "takes them for words (of several columns the first), --format=lines for texts"
    )


def _has_tags(rows: list[list[str]], column) -> bool:
    """Whether most lines end with a tag of a phrase, or all have one in the same column.

    Not O alone in a few lines ("Blood of type O").
    """
    if column.name == "part_of_speech":
        return False
    same = len({len(fields) for fields in rows}) == 1
    columns = [[fields[-1] for fields in rows if len(fields) > 1]]
    columns += zip(*(fields[1:-1] for fields in rows), strict=False) if same else []
    for place, fields in enumerate(columns):
        tags = [field for field in fields if column.is_tag(field)]
        enough = 2 * len(tags) > len(rows) if place == 0 else len(tags) == len(rows)
        if enough and (len(rows) >= _FEW or set(tags) != {"O"}):
            return True
    return False
