"""MediaWiki's dumps and markup as paragraphs of text, for the command `data_prep.wikipedia`.

Begin with `wikitext.passages`, the paragraphs of a page, and `nodes`, which says what of its markup
is shown. `wikipedia_dump` cuts a dump into pages. The other three serve `wikitext`:
`unclosed_markup` refuses pages that would take minutes, `variants` chooses a script of Chinese or
Serbian, and `lost_words` finds the sentences that lost words with a template.
"""
