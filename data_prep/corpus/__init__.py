"""Text in: files, layouts, markup, corpora by name, and word pieces learnt from them."""
