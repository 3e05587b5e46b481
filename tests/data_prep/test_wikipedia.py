"""Dumps: reading pages, the corpus and its sidecar, resuming, errors; the real fragments."""

import bz2
import gzip
import itertools
import json
import re
from xml.sax.saxutils import escape

import pytest
from corpora import documents
from damage import flipped
from in_process import call

from data_prep import wikipedia
from data_prep.corpus import text_layout
from data_prep.corpus.mediawiki import wikipedia_dump
from data_prep.corpus.text_files import text_lines
from data_prep.jobs import checked_json
from data_prep.sentences import split_sentences
from data_prep.wikipedia import extract
from official_bert.common.errors import UserError

SENTENCE = "Page number {} is about a town in the north, and it has some text."


def page_xml(number, text=None, namespace=0, redirect=""):
    text = "\n\n".join([SENTENCE.format(number)] * 5) if text is None else text
    return (
        f"<page><title>Page {number}</title><ns>{namespace}</ns><id>{number}</id>{redirect}"
        f"<revision><id>{1000 + number}</id><model>wikitext</model>"
        f"<text>{escape(text)}</text></revision></page>"
    )


def dump_xml(pages):
    space = "http://www.mediawiki.org/xml/export-0.11/"
    return f'<mediawiki xmlns="{space}">\n' + "\n".join(pages) + "\n</mediawiki>\n"


@pytest.fixture
def small_parts(monkeypatch):
    """Make what workers take small: some pages, a stream or two."""
    monkeypatch.setattr(wikipedia, "_BATCH_BYTES", 1500)
    monkeypatch.setattr(wikipedia_dump, "_BZ2_STRETCH", 500)
    monkeypatch.setattr(wikipedia_dump, "_PLAIN_STRETCH", 3000)


def multistream(text, size=2000):
    """Return several bzip2 streams behind one another; pages and tags lie across them."""
    return b"".join(bz2.compress(text[at : at + size]) for at in range(0, len(text), size))


@pytest.fixture
def dump(tmp_path):
    pages = [page_xml(number) for number in range(40)]
    pages[3] = page_xml(3, redirect='<redirect title="Page 4" />')
    pages[5] = page_xml(5, namespace=10)
    pages[7] = page_xml(7, text="Too short.")
    pages[9] = page_xml(9, text="It may be:\n{{disambig}}")
    path = tmp_path / "dump.xml"
    path.write_text(dump_xml(pages))
    return path


def read_output(folder):
    """Return (titles of the sidecar, documents), in order."""
    entries = []
    for path in sorted(folder.glob("articles-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            entries += [json.loads(line) for line in file]
    return entries, list(documents([str(path) for path in sorted(folder.glob("wiki-*.txt.gz"))]))


def test_corpus_sidecar_and_report(dump, tmp_path):
    report = extract(str(dump), tmp_path / "out", megabytes_per_file=0.004)
    entries, found = read_output(tmp_path / "out")
    assert [entry["id"] for entry in entries] == [n for n in range(40) if n not in (3, 5, 7, 9)]
    assert [entry["sentences"] for entry in entries] == [len(document) for document in found]
    assert found == [[SENTENCE.format(entry["id"])] * 5 for entry in entries]
    assert entries[0] == {"id": 0, "revision": 1000, "title": "Page 0", "sentences": 5}
    assert (report["pages"], report["articles"], report["sentences"]) == (40, 36, 180)
    pages = {name: n for name, n in report["dropped"].items() if name.startswith("page")}
    kinds = ("redirect", "other namespace", "too short", "disambiguation")
    assert pages == {f"page: {kind}": 1 for kind in kinds}
    assert checked_json.read(str(tmp_path / "out" / "report.json")) == report


def test_compressed_dumps_and_workers_give_the_same_bytes(dump, tmp_path, small_parts):
    text = dump.read_bytes()
    (tmp_path / "plain.xml.bz2").write_bytes(bz2.compress(text))
    (tmp_path / "multistream.xml.bz2").write_bytes(multistream(text))
    (tmp_path / "packed.xml.gz").write_bytes(gzip.compress(text))
    outputs = {}
    for name, workers, stretches in [
        ("dump.xml", 1, 5),
        ("dump.xml", 2, 5),
        ("plain.xml.bz2", 1, 1),
        ("multistream.xml.bz2", 1, 4),
        ("multistream.xml.bz2", 2, 4),
        ("packed.xml.gz", 2, 1),
    ]:
        folder, path = tmp_path / f"{name}-{workers}", str(tmp_path / name)
        assert (len(wikipedia_dump.stretches(path)) == 1) == (stretches == 1)
        assert len(wikipedia_dump.stretches(path)) >= stretches
        report = extract(path, folder, num_workers=workers, megabytes_per_file=0.003)
        files = {f.name: f.read_bytes() for f in folder.glob("*.gz")}
        outputs[folder.name] = files, report["dropped"], report["pages"]
    first = outputs.pop("dump.xml-1")
    assert len(first[0]) > 3 and all(output == first for output in outputs.values())


@pytest.mark.parametrize("size", range(1800, 1860, 3))
def test_stretches_hold_every_page_once_wherever_streams_end(dump, tmp_path, monkeypatch, size):
    (tmp_path / "m.xml.bz2").write_bytes(multistream(dump.read_bytes(), size))
    monkeypatch.setattr(wikipedia_dump, "_BZ2_STRETCH", 150)
    monkeypatch.setattr(wikipedia_dump, "_PLAIN_STRETCH", size)
    for path in (dump, tmp_path / "m.xml.bz2"):
        stretches = [wikipedia_dump.Stretch(str(path), *s) for s in wikipedia_dump.stretches(path)]
        assert len(stretches) > 5
        titles = [s.parse(raw).title for s in stretches for raw in s.pages()]
        assert titles == [f"Page {number}" for number in range(40)]
        seams = [(s.first, s.end) for s in stretches if s.first is not None]
        assert seams[0][0] == 0 and seams[-1][1] == path.stat().st_size
        assert all(a[1] == b[0] for a, b in zip(seams[:-1], seams[1:], strict=True))


@pytest.mark.parametrize("name", ["dump.xml", "multistream.xml.bz2", "packed.xml.gz"])
def test_a_killed_run_continues_with_the_same_bytes(dump, tmp_path, monkeypatch, small_parts, name):
    text = dump.read_bytes()
    (tmp_path / "multistream.xml.bz2").write_bytes(multistream(text))
    (tmp_path / "packed.xml.gz").write_bytes(gzip.compress(text))
    path = str(tmp_path / name)
    whole = extract(path, tmp_path / "whole", megabytes_per_file=0.003)

    written, parsed = [], []
    write, article = wikipedia._write, wikipedia.article

    def dying(*arguments):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(write(*arguments))

    monkeypatch.setattr(wikipedia, "_write", dying)
    with pytest.raises(KeyboardInterrupt):
        extract(path, tmp_path / "out", megabytes_per_file=0.003)
    assert len(list((tmp_path / "out").glob("wiki-*"))) == 3
    pages = checked_json.read(str(tmp_path / "out" / "report.json"))["pages"]
    monkeypatch.setattr(wikipedia, "_write", write)
    monkeypatch.setattr(wikipedia, "article", lambda p, *a: parsed.append(p) or article(p, *a))
    assert extract(path, tmp_path / "out", megabytes_per_file=0.003) == whole
    assert [page.identifier for page in parsed] == list(range(pages, 40))  # none of them again
    for file in (tmp_path / "whole").glob("*.gz"):
        assert file.read_bytes() == (tmp_path / "out" / file.name).read_bytes()


def test_a_finished_output_is_left_alone(dump, tmp_path, monkeypatch):
    whole = extract(str(dump), tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(wikipedia_dump, "Stretch", None)  # no page is read any more
        assert extract(str(dump), tmp_path / "out") == whole
    with pytest.raises(UserError, match="min_characters: was 200, now 0.*--overwrite"):
        extract(str(dump), tmp_path / "out", min_characters=0)
    report = extract(str(dump), tmp_path / "out", min_characters=0, overwrite=True)
    assert report["articles"] == 37 and len(list((tmp_path / "out").glob("wiki-*"))) == 1


def test_another_dump_of_the_same_name_is_refused_and_a_moved_one_is_the_same(dump, tmp_path):
    whole = extract(str(dump), tmp_path / "out")
    (tmp_path / "moved").mkdir()
    moved = dump.rename(tmp_path / "moved" / dump.name)
    assert extract(str(moved), tmp_path / "out") == whole
    dump.write_bytes(moved.read_bytes().replace(b"Page number 12", b"Page number 21"))
    with pytest.raises(UserError, match=r"dump.sha256: was .*, now .*--overwrite"):
        extract(str(dump), tmp_path / "out")


def test_a_share_below_half_stops(dump, tmp_path):
    """Text that wrong rules lose looks like any other text: the share tells."""
    lost = page_xml(1, text="\n\n".join([SENTENCE.format(1)] + ["No end of a sentence here"] * 9))
    dump.write_text(dump_xml([lost]))
    match = r"only 23% of the 290 characters.*paragraphs without a sentence: 9.*--accept_loss"
    for _ in range(2):  # a finished one too
        with pytest.raises(UserError, match=match):
            extract(str(dump), tmp_path / "out", min_characters=10)
    report = extract(str(dump), tmp_path / "out", min_characters=10, accept_loss=True)
    assert (report["characters"], report["characters_found"]) == (65, 65 + 9 * 25)


def test_a_dump_without_names_of_namespaces_is_said(dump, tmp_path, capsys):
    extract(str(dump), tmp_path / "en")
    assert "namespaces" not in capsys.readouterr().err
    extract(str(dump), tmp_path / "de", language="de")
    assert "does not name its namespaces" in capsys.readouterr().err


def test_holes_may_be_marked(dump, tmp_path):
    dump.write_text(dump_xml([page_xml(1, text="It has {{x}} people. " + f"{SENTENCE} " * 5)]))
    assert extract(str(dump), tmp_path / "out")["sentences"] == 5
    assert extract(str(dump), tmp_path / "marked", hole="[...]")["sentences"] == 6
    assert read_output(tmp_path / "marked")[1][0][0] == "It has [...] people."


def test_bytes_that_are_not_utf8(dump, tmp_path):
    """Issue: one bad byte ended a dump."""
    bad = tmp_path / "bad.xml"
    bad.write_bytes(dump.read_bytes().replace(b"Page number 12 is", b"Page n\xfcmber 12 is"))
    with pytest.raises(UserError, match=r"page 'Page 12' has the byte 0xfc.*invalid_utf8=replace"):
        extract(str(bad), tmp_path / "error")
    for choice, found in (("replace", "Page n\ufffdmber 12"), ("ignore", "Page nmber 12")):
        report = extract(str(bad), tmp_path / choice, invalid_utf8=choice)
        assert (report["invalid_utf8"], report["articles"]) == (1, 36)
        assert all(sentence.startswith(found) for sentence in read_output(tmp_path / choice)[1][8])
    assert extract(str(dump), tmp_path / "good")["invalid_utf8"] == 0


def test_a_stretch_that_is_damaged_is_found(dump, tmp_path, write, small_parts):
    packed = multistream(dump.read_bytes())
    places = [found.start() for found in wikipedia_dump._STREAM.finditer(packed)]
    for place, match in [(places[2], "Invalid data|damaged"), (places[3] + 60, "damaged")]:
        path = write("damaged.xml.bz2", flipped(packed, place, 7))
        with pytest.raises(UserError, match=match):
            extract(path, tmp_path / f"out-{place}")


def test_errors(dump, tmp_path, write):
    def fails(content, match, name="bad.xml"):
        with pytest.raises(UserError, match=match):
            extract(write(name, content), tmp_path / "out")

    text = dump.read_bytes()
    fails(text[: len(text) // 2], r"bad\.xml is damaged or truncated after page 'Page \d+'")
    packed = bz2.compress(text)
    fails(packed[:40], r"is damaged or truncated before its first page", "bad.xml.bz2")
    fails(b"<html><p>x</p></html>", r"no MediaWiki dump \(its root is <html>\)")
    fails(dump_xml([]), "holds no page")
    with pytest.raises(UserError, match="No such file"):
        extract(str(tmp_path / "none.xml"), tmp_path / "out")
    with pytest.raises(UserError, match="but a folder"):
        (tmp_path / "folder").mkdir()
        extract(str(tmp_path / "folder"), tmp_path / "out")
    short = dump_xml([page_xml(1, text="Short.")])
    fails(short, r"no article with at least 200 characters of text among 1")


def test_the_command(dump, tmp_path, capsys):
    flags = f"--dump={dump}", f"--output={tmp_path / 'out'}", "--num_workers=1"
    assert call(wikipedia, *flags) == 0
    told = capsys.readouterr().out
    assert "36 articles of 40 pages, 180 sentences" in told and "page: disambiguation" in told


@pytest.mark.slow
def test_the_real_fragments_agree_with_extracted_text(data_dir, tmp_path):
    """Against other projects' extraction of the same articles, at other revisions."""
    (path,) = (data_dir / "wikipedia_dump").glob("enwiki-latest*.bz2")
    report = extract(str(path), tmp_path / "out")
    assert report["pages"] == 206 and report["articles"] >= 95
    assert report["dropped"]["page: redirect"] == 99
    entries, found = read_output(tmp_path / "out")
    ours = {e["title"]: document for e, document in zip(entries, found, strict=True)}

    def normal(sentences):
        keys = (" ".join(re.findall(r"\w+", sentence.lower())) for sentence in sentences)
        return {key for key in keys if key.count(" ") > 2}

    lines = text_lines(str(data_dir / "corpus" / "wikipedia" / "wiki_00.txt.gz"))
    blocks = [list(block) for is_text, block in itertools.groupby(lines, bool) if is_text]
    blocks = [block for block in blocks if block[0] in ours]
    common = our_count = their_count = 0
    for block in blocks:
        (article,) = text_layout.articles(block)
        theirs = normal(s for paragraph in article for s in split_sentences(paragraph))
        mine = normal(ours[block[0]])
        common += len(mine & theirs)
        our_count += len(mine)
        their_count += len(theirs)
    # Measured: 97 articles in common, with 16,954 sentences of our 17,794 and their 18,005.
    assert len(blocks) > 85 and common > 0.92 * max(our_count, their_count)
    markup = sum(c in "{}[]|<>" for document in found for s in document for c in s)
    assert markup < 1e-4 * report["characters"]


def test_a_fragment_full_of_tables(data_dir, tmp_path):
    path = data_dir / "wikipedia_dump" / "enwiki-table-markup.xml.bz2"
    report = extract(str(path), tmp_path / "out")
    assert report["articles"] == report["pages"] == 5
    assert report["dropped"]["tables"] == 20
    for _, document in zip(range(5), read_output(tmp_path / "out")[1], strict=False):
        assert not any("||" in sentence or "{|" in sentence for sentence in document)
