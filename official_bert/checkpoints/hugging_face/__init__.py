"""Folders of Hugging Face's libraries, read and written without `transformers`.

Begin with `huggingface`, which reads and writes a whole folder. Each of its files has a module:
`huggingface_config`, `huggingface_tensors`, `huggingface_tokenizer`, `sentence_transformers` and
`model_card`; `huggingface_heads` says which head a folder has. `resolve` and `convert` call it.
"""
