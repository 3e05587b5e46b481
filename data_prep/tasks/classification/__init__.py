"""Tasks that classify texts or choose among them: GLUE, SWAG, own files."""
