"""One page with the same content in more than twenty scripts, and ends that are hard in some."""

import pytest

from data_prep.corpus import sentence_splitter
from data_prep.corpus.sentence_splitter import split_sentences
from tests.parity.corpus_checks import extracted, joined, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page[1])
def test_the_same_page_has_the_same_sentences_in_every_script(page):
    _, language, files, sentences = page
    found, report = extracted(language, files, sentences)
    assert found == 2 * sentences and report["options"]["language"] == language
    assert report["dropped"] == {"images": 1, "categories": 1, "language links": 1}
    # Where the language is not said, only a Greek question mark is taken for a semicolon.
    if language != "el":
        assert split_sentences(joined(language, sentences), "en") == sentences


def test_there_are_more_than_twenty_scripts():
    assert len({page[0] for page in pages()}) > 20


@pytest.mark.parametrize(
    "language, sentences",
    [
        ("hi", ["यह 12.5 कि.मी. है।", "डॉ. राम और एम. एस. धोनी आए।", "वह गया।"]),
        ("mr", ["ते 5 कि.मी. दूर आहे.", "इ.स. 1950 मध्ये."]),
        ("hi", ["वह था.", "यह है.", "वह गया."]),
        ("ar", ["د. محمد هنا.", "نعم."]),
        ("am", ["ሰዎች አሉ፡፡", "አዎ፤ እሺ።"]),
        ("hy", ["Նա գնաց տուն:", "Նա քնեց:"]),
        ("my", ["သူလာသည်၊ သူသွားသည်။", "ဟုတ်သည်။"]),
        ("th", ["เด็ก ๆ เล่นกันริมฝั่งน้ำ", "ปี 2475 แดง เกิด"]),
        ("ko", ["네.", "갑니다."]),
        ("he", ['ד"ר כהן גר שם.', '"כן", אמר מנכ"ל החברה.', "האם ידעת?"]),
    ],
)
def test_hard_ends(language, sentences):
    assert split_sentences(" ".join(sentences), language) == sentences


def test_marks_without_a_blank_behind_them_or_within_quotation_marks():
    assert split_sentences("नदी है।गाँव है।", "hi") == ["नदी है।", "गाँव है।"]
    assert split_sentences("ทดสอบ", "th") == ["ทดสอบ"]
    # Nothing within quotation marks that the splitter left whole is cut.
    quoted = ["「来た。見た。」と彼は言った。"]
    assert sentence_splitter.corrected(quoted[0], quoted) == quoted


def test_what_ends_and_what_closes():
    for text in ["It is.", "它深吗？", "है।", 'He said "no".', "Է:", "ไม่มีเครื่องหมาย", "So…"]:
        assert sentence_splitter.ends(text), text
    for text in ["Early life", "इतिहास", "历史", "version 1.2 of it", "", "Ratio 1:2"]:
        assert not sentence_splitter.ends(text), text
    assert sentence_splitter.closes("as follows:") and not sentence_splitter.closes("Frühes Leben")


@pytest.mark.parametrize("piece", ["क. ", "(。", "กก ", "।", "「。」 ", "። ", "፡"])
def test_long_runs_are_cut_without_loss(piece):
    """Each would take minutes if time grew with the square of the text."""
    text = (piece * 30_000).strip()
    found = "".join(sentence_splitter.corrected(text, [text]))
    assert found.replace(" ", "") == text.replace(" ", "")
