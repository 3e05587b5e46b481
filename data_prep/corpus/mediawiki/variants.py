"""Language variants in wikitext: -{zh-hans:信息;zh-hant:資訊}-, of which a reader sees one.

Wikis of Chinese, Serbian, Kazakh and some others mark differences between scripts or countries so,
with flags before a bar, as in -{T|...}-. The rules are those of MediaWiki's LanguageConverter. It
shows the text of the reader's variant, else of a variant that this falls back to, else the first.
Rules for titles or for the rest of the page show nothing; other text is shown as it is.
"""

import re

# The languages that MediaWiki converts.
CONVERTED = frozenset(
    ("ban", "crh", "gan", "iu", "kk", "ku", "mni", "sh", "shi", "sr", "tg", "tly", "uz", "wuu")
    + ("yue", "zgh", "zh")
)
_HANS, _HANT = ("hans", "cn", "sg", "my"), ("hant", "tw", "hk", "mo")
_PLAIN = ("hans", "hant", "cn", "tw", "hk", "sg", "mo", "my")  # the order of zh itself
_DEEPEST = 10  # marks within marks; real pages go no deeper, and it costs little time

_MARK = re.compile(
    r"<nowiki>[^<]*</nowiki>|-\{(?!\{(?!\{))|\{\{|\}\}|\}-", re.IGNORECASE
)  # "-{{x}}-" is a template
_RULE = re.compile(r"(?:(?P<before>[^:;=]*)=>)?\s*(?P<code>[a-z]{2,4}(?:-[a-z]+)*)\s*:", re.I)
_SILENT = frozenset("THN-D")  # a title, a hidden rule, a name, a rule taken back, a description


def shown(wikitext: str, language: str) -> str:
    """Return a page's source as a reader of one variant sees it.

    Args:
      language: of the wiki ("zh", "sr"), or a variant of it ("zh-tw").
    """
    base = language.split("-")[0]
    if base not in CONVERTED or "-{" not in wikitext:
        return wikitext
    frames, kinds, at = [[]], [], 0  # text inside each open mark; the open marks
    for mark in _MARK.finditer(wikitext):
        frames[-1].append(wikitext[at : mark.start()])
        at, text = mark.end(), mark.group()
        if text == "-{" and len(frames) <= _DEEPEST:
            frames.append([])
            kinds.append("-{")
            continue
        if text == "}-" and "-{" in kinds[-2:]:
            while kinds.pop() != "-{":
                pass
            text = _chosen("".join(frames.pop()), base, language)
        elif text == "{{" and len(frames) > 1:
            kinds.append("{{")
        elif text == "}}" and kinds[-1:] == ["{{"]:
            kinds.pop()
        frames[-1].append(text)
    rest = "-{".join("".join(frame) for frame in frames)  # unclosed marks stay
    return rest + wikitext[at:]


def _chosen(content: str, base: str, language: str) -> str:
    flags, bar, rules = content.partition("|")
    flags = {flag.strip() for flag in flags.split(";")} if bar else set()
    if flags and not all(flag in "ADHNRST-+" or _is_variant(flag, base) for flag in flags):
        flags, rules = set(), content  # the bar of a link
    if not bar:
        rules = content
    if "R" in flags or any(_is_variant(flag, base) for flag in flags):
        return rules
    if flags & _SILENT:
        return ""
    texts = _texts(rules, base)
    if not texts:
        return rules
    return next((texts[code] for code in _order(base, language) if code in texts), "") or next(
        iter(texts.values())
    )


def _is_variant(code: str, base: str) -> bool:
    return re.fullmatch(rf"{base}(-[a-z]+)*", code, re.IGNORECASE) is not None


def _texts(rules: str, base: str) -> dict[str, str]:
    """Return the text of each variant; {} where these are not rules."""
    texts, last = {}, None
    for part in rules.split(";"):
        rule = _RULE.match(part)
        if rule and _is_variant(rule["code"], base):
            last = rule["code"].lower()
            texts.setdefault(last, part[rule.end() :].strip())
        elif last is not None and part.strip():
            texts[last] += ";" + part  # the semicolon of an entity or of the text
        elif part.strip():
            return {}
    return {code: text for code, text in texts.items() if text}


def _order(base: str, language: str) -> list[str]:
    """Return the codes of variants from the wanted one on."""
    wanted = language.partition("-")[2]
    near = next((group for group in (_HANS, _HANT) if wanted in group), _PLAIN)
    return [language.lower(), *(f"{base}-{name}" for name in near), base]
