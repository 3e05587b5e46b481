"""The fields and the layers in which BERT's successors differ from it; several of them share each.

A successor's shape is a `SuccessorConfig`, which its fields mark in any `bert_config.json`.
"""
