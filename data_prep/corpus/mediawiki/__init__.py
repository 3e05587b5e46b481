"""MediaWiki's dumps and markup as paragraphs of text, for the command `data_prep.wikipedia`.

Begin with `wikitext.passages`, which decides what of a page is text. `wikipedia_dump` cuts a dump
into pages. The other three serve `wikitext`: `unclosed_markup` refuses pages that would take
minutes, `variants` chooses a script of Chinese or Serbian, and `lost_words` finds the sentences
that lost words with a template.
"""
