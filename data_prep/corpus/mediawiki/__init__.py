"""MediaWiki's dumps and markup as paragraphs of text."""
