"""Text for pre-training: files, layouts, markup, corpora by name, and a WordPiece learner."""
