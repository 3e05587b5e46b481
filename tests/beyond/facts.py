"""Cases that tests of the core leave out or add where systems beyond the paper are."""

# tests.test_options_in_messages
ONLY_WHERE_IT_IS = {("experiments.beyond.seq2seq.task", "task_options"): "reports read no examples"}

# tests.experiments.tables.planning.test_goldens: tables on the sample, and those whose data are
# made by a command first.
SAMPLE = ("family:smoke",)
MADE = ("gbert", "seq2seq", "video")
