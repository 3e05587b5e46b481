"""Pre-training data (section 3.1) and the tasks of section 4: text in, arrays out.

The modules of this folder are the commands, in the order in which they are run: `wikipedia` and
`sentences` make a corpus, `vocab` learns its WordPieces, `create_pretraining_data` writes records
and `show_records` prints them. `records` is for code that trains. Begin with
`create_pretraining_data`: it names every step. The rooms behind the commands are `corpus` (reading
text), `pretraining` (pairs and masks), `tasks` (benchmarks) and `jobs` (processes and files).
"""
