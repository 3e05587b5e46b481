"""The text passages of MediaWiki pages."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.corpus.mediawiki import nodes, variants, wikitext

PAGE = """\
{{Infobox city|name=Leeds|note={{nested|a}} text}}
<!-- a comment. -->
[[File:Leeds.jpg|thumb|The [[town hall]] of Leeds is big.]]
'''Leeds''' ({{IPAc-en|l|iː|d|z}}) is a ''city''<ref name="a">Smith, ''Book''. p. 3.</ref> in
[[West Yorkshire|Yorkshire]], [[England]].<ref name="b" /> It covers {{convert|552|km2|sqmi}} and
lies {{convert|3|to|5|mi|km}} from {{lang|fr|Paris}}&nbsp;&ndash; H<sub>2</sub>O.

The area is <math>x^2</math> today. It is large.
__NOTOC__
== History ==
{{Main|History of Leeds}}
It was old.
* A list item that is a sentence.
# Another one.
: An indented remark.
; Term : definition.
Then it grew, see [https://example.org the site] and [https://bare.example].

{| class="wikitable"
! Year
|-
| 1990 || It was a cell.
|}
<gallery>
File:A.jpg|A picture.
</gallery>
{{quote|Dropped.}}
<blockquote>He said "no". So it was.</blockquote>
A caption without an end

== References ==
{{reflist}}
This looks like a sentence.

== ''Legacy'' ==
The end came. [[Category:Cities]] [[de:Leeds]] [[:Category:Towns|Towns]] remain.
"""


def test_a_page():
    dropped = Counter()
    found = wikitext.passages(PAGE, dropped)
    assert found[0] == (
        "Leeds is a city in Yorkshire, England. It covers 552 km2 and lies 3 to 5 mi from Paris – "
        "H2O."
    )
    # The sentence that lost its formula is known by a mark.
    sentences = found[1].replace(". ", ".|").split("|")
    assert [sentence[:11] for sentence in sentences] == ["The area is", "It is large"]
    assert wikitext.without_holes(sentences, dropped) == ["It is large."]
    assert found[2:] == [
        "It was old.",
        "Then it grew, see the site and.",
        'He said "no". So it was.',
        "The end came. Towns remain.",
    ]
    counted = {"references": 2, "list items": 4, "tables": 1, "images": 2, "reference sections": 1}
    counted |= {"headings": 3, "categories": 1, "sentences with a formula": 1}
    assert counted.items() <= dropped.items() and dropped["paragraphs without a sentence"] >= 1


@pytest.mark.parametrize(
    "source, expected",
    [
        ("'''Unbalanced'' quotes''' here.", "Unbalanced quotes here."),
        ("A line\nbroken in the source.", "A line broken in the source."),
        ("Born (; 1950) in {{nowrap|New York}}.", "Born (1950) in New York."),
        ("X {{as of|2010|lc=y}} and {{as of|2011}} y.", "X as of 2010 and As of 2011 y."),
        ("It costs &pound;5 &amp; more &#8212; so.", "It costs £5 & more — so."),
        ("The [[Category:X]]end of [[Bob (cat)|Bob]]s.", "The end of Bobs."),
        ("Broken [[link is left. {{Template", ""),
        ("<div>Inside a box.</div>", "Inside a box."),
        ("他住在臺北。[[文件:a.jpg|照片。]]", "他住在臺北。"),
        ("[[Bild:a b.SVG|mini|Text. So.]] Es war alt. __KEIN_INHALT__ So.", "Es war alt. So."),
        ("It is at {{val|100|u=°C}} of {{formatnum:12345}}.", "It is at 100 °C of 12345."),
        # Notes and boxes stand for no words.
        ("It is old.{{cn}} It{{efn|a}} is{{r|b}}, yes. {{cn}}", "It is old. It is, yes."),
        ("{{Box|a=b}}'''Leeds''' ({{IPA|x}}, {{y}}; born 1957) is.", "Leeds (born 1957) is."),
        ("{{flagicon}} {{x}} France won ({{IPA|x}}; {{y}}).", "France won."),
        ("河流{{来源请求}}。它很长。{{来源请求}}水。", "河流。它很长。水。"),
        ("It is so.[https://x.org]\n<source>\nx\n</source>\nIt is not.", "It is so. It is not."),
        (
            "<ruby>川<rp>(</rp><rt>かわ</rt></ruby>は長い。<includeonly>X.</includeonly>",
            "川は長い。",
        ),
    ],
)
def test_cases(source, expected):
    assert " ".join(wikitext.passages(source)) == expected


@pytest.mark.parametrize(
    "source",
    [
        "He studied with {{ill|Hans Meier|de}} in Bonn.",
        "She earned {{US$|500 million}} in one year.",
        "{{flag|France}} won the final.",
        "La ville compte {{unité|5000|habitants}} environ.",
        "La ville compte {{unité|5000|habitants}}.",
        "He said “{{gloss|river}}” twice.",
        "A ({{circa|1850}} – 1900) was here.",
        "A twenty-{{x}} years war.",
        "人口{{PopulationOf|x}}人。",
        "It costs ${{Inflation|US|5}} now.",
        "{{Drop|T}}he end came.",
        "See https://example.org/a_b for it.",
        "The tune <score>c d</score> is short.",
        "Here <syntaxhighlight lang='c' inline>x = 1</syntaxhighlight> sets it.",
    ],
)
def test_a_sentence_that_lost_words_goes_or_keeps_a_mark(source):
    dropped = Counter()
    (passage,) = wikitext.passages(f"{source} It is large.", dropped)
    sentences = passage.replace(" It is large.", "\nIt is large.").split("\n")
    assert wikitext.without_holes(sentences, dropped) == ["It is large."]
    assert dropped["sentences that lost words of a template"] == 1
    marked, kept = wikitext.without_holes(sentences, dropped, "[...]")
    assert "[...]" in marked and kept == "It is large."


def test_names_of_namespaces_come_from_the_wiki():
    site = nodes.Site.of("ru", {"6": "Файл", "14": "Категория", "-2": "Медиа"})
    source = "Река.[[файл:x|мини|Вид. Да.]] Вода[[ Категория:Реки]].[[Медиа:a|b]] [[:Файл:x|Y]]."
    assert wikitext.passages(source, None, site) == ["Река. Вода. Y."]
    site = nodes.Site.of("vi", {"6": "Tập tin", "14": "Thể loại"})
    assert wikitext.passages("Sông.[[Tập_tin:a|b. C.]][[File:c|d.]]", None, site) == ["Sông."]


@pytest.mark.parametrize(
    "source, hans, taiwan",
    [
        ("-{zh-hans:信息;zh-hant:資訊}-。", "信息。", "資訊。"),
        ("-{zh-cn:计算机; zh-tw:電腦;}-。", "计算机。", "電腦。"),
        ("-{zh-hk:的士;zh-sg:德士}-。", "的士。", "的士。"),
        ("-{T|zh-hans:河流;zh-hant:河川}-水。", "水。", "水。"),
        ("-{A|zh-cn:甲;zh-tw:乙}-水-{H|zh-cn:x;zh-tw:y}-。", "甲水。", "乙水。"),
        ("-{原文}--{R|a:b}-。", "原文a:b。", "原文a:b。"),
        ("-{zh;zh-hans|文字}-。", "文字。", "文字。"),
        ("-{zh-hans:[[A|甲]];zh-hant:[[B|乙]]}-。", "甲。", "乙。"),
        ("-{zh-hans:a-{zh-cn:b;zh-tw:c}-d;zh-hant:e}-。", "abd。", "e。"),
        ("-{程序=>zh-cn:程序;程式=>zh-tw:程式}-。", "程序。", "程式。"),
    ],
)
def test_one_variant_is_shown(source, hans, taiwan):
    assert wikitext.passages(source, None, nodes.Site("zh")) == [hans]
    assert wikitext.passages(source, None, nodes.Site("zh-tw")) == [taiwan]


def test_variants_of_other_wikis():
    source = "-{sr-ec:ћирилица;sr-el:latinica}-."
    assert wikitext.passages(source, None, nodes.Site("sr")) == ["ћирилица."]
    assert wikitext.passages(source, None, nodes.Site("sr-el")) == ["latinica."]
    assert wikitext.passages("x-{y}-z.", None, nodes.Site("en")) == ["x-{y}-z."]
    assert "x." in variants.shown("-{" * 50_000 + "x." + "}-" * 50_000, "zh")


def test_kinds_of_pages():
    kind = wikitext.why_not_article
    assert kind("Leeds", 0, False, "'''Leeds''' is a city.") is None
    assert kind("Talk:Leeds", 1, False, "Hello.") == "other namespace"
    assert kind("Leedz", 0, True, "x") == "redirect"
    assert kind("Leedz", 0, False, "#REDIRECT [[Leeds]]") == "redirect"
    several = "Lee may be:\n* A\n{{human name disambiguation}}"
    assert kind("Lee", 0, False, several) == "disambiguation"
    assert kind("Lee (disambiguation)", 0, False, "x") == "disambiguation"
    assert kind("Ambiguity", 0, False, "[[Disambiguation]] is a word.") is None


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from(
            ["{{", "}}", "[[", "]]", "|", "'''", "''", "{|", "|}", "\n", "==", "<ref>", "</ref>"]
            + ["<!--", "-->", "* ", "word", " ", "End.", "File:a.jpg", "&amp;", "<math>", "</math>"]
            + [*"\x01\x02\x03é。=!;", "-{", "}-", "zh-cn:", "<br>", "[http://a.b c]"]
            + ["convert|1|km"]
        ),
        max_size=30,
    ).map("".join)
)
def test_any_source_gives_clean_lines(source):
    for passage in wikitext.passages(source, None, nodes.Site("zh")):
        assert passage == " ".join(passage.split())
        assert not any(mark in passage for mark in ["{{", "}}", "[[", "]]", "{|", "''", "\x01"])
