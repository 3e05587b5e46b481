"""What of a MediaWiki page is a text passage."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.corpus import wikitext

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
    assert dropped["sentences with a formula"] == 1
    assert {
        name: dropped[name]
        for name in ("references", "list items", "tables", "images", "reference sections")
    } == {"references": 2, "list items": 4, "tables": 1, "images": 2, "reference sections": 1}
    assert dropped["headings"] == 3 and dropped["categories"] == 1
    assert dropped["paragraphs without a sentence"] >= 1


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
    ],
)
def test_cases(source, expected):
    assert " ".join(wikitext.passages(source)) == expected


def test_kinds_of_pages():
    kind = wikitext.page_kind
    assert kind("Leeds", 0, False, "'''Leeds''' is a city.") is None
    assert kind("Talk:Leeds", 1, False, "Hello.") == "other namespace"
    assert kind("Leedz", 0, True, "x") == "redirect"
    assert kind("Leedz", 0, False, "#REDIRECT [[Leeds]]") == "redirect"
    assert kind("Lee", 0, False, "Lee may be:\n* A\n{{human name disambiguation}}") == (
        "disambiguation"
    )
    assert kind("Lee (disambiguation)", 0, False, "x") == "disambiguation"
    assert kind("Ambiguity", 0, False, "[[Disambiguation]] is a word.") is None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["{{", "}}", "[[", "]]", "|", "'''", "''", "{|", "|}", "\n", "==", "<ref>", "</ref>"]
            + ["<!--", "-->", "* ", "word", " ", "End.", "File:a.jpg", "&amp;", "<math>", "</math>"]
            + ["\x01", "é", "。", "<br>", "[http://a.b c]", "=", "!", ";", "convert|1|km"]
        ),
        max_size=30,
    ).map("".join)
)
def test_any_source_gives_clean_lines(source):
    for passage in wikitext.passages(source):
        assert passage == " ".join(passage.split())
        assert not any(mark in passage for mark in ["{{", "}}", "[[", "]]", "{|", "''", "\x01"])
