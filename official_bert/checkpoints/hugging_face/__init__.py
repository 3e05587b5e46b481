"""Folders of Hugging Face's libraries, read and written."""
