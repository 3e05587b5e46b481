"""Tasks that classify texts or choose among them: GLUE, SWAG, users' own files."""
