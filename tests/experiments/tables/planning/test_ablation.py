"""Tables as data: descriptions that cannot be meant are refused where they are given."""

import dataclasses

import pytest

from experiments.configs.columns import HELDOUT_LOSS
from experiments.tables.planning import ablation as ablation_parts
from experiments.tables.planning import claims
from experiments.tables.planning.plan import plan_table
from experiments.training.settings.config_files import load_config
from official_bert.common.errors import UserError


def test_descriptions_that_say_two_things_are_refused():
    table = load_config("table5:smoke")
    trained, column = table.variants[0], table.column("SNLI")
    asked = ablation_parts.Cloze("length 64")
    for make, message in (
        (lambda: ablation_parts.Variant("x"), "variant x: give pretrain or checkpoint"),
        (lambda: dataclasses.replace(trained, checkpoint="y"), "give pretrain or checkpoint"),
        (lambda: ablation_parts.Variant("x", checkpoint="y", random_init=True), "go with pretrain"),
        (lambda: dataclasses.replace(trained, learnt="cbow"), "BERT: learnt and optional go with"),
        (
            lambda: dataclasses.replace(trained, random_init=True, checkpoints=("y",)),
            "BERT: give random_init or checkpoints",
        ),
        (lambda: dataclasses.replace(trained, seeds=(2, 2)), "variant BERT: seeds"),
        (lambda: dataclasses.replace(trained, seeds=()), "variant BERT: it has no seeds"),
        (lambda: ablation_parts.Variant("x", checkpoints=("y",)), "give pretrain or checkpoint"),
        (lambda: column.changed(seeds=(1, 1)), "column SNLI: seeds"),
        (lambda: column.changed(seeds=(1, 1000)), "SNLI: its seeds must be from 0 to 999"),
        (lambda: column.changed(seeds=(-1,)), "SNLI: its seeds must be from 0"),
        (lambda: column.changed(seeds=()), "SNLI: it has no seeds; give at least one"),
        (lambda: column.changed(search=("x",)), "search: .* must be a JSON object"),
        (lambda: column.changed(search=({"dropout": "x"},)), "dropout must be a number"),
        (
            lambda: ablation_parts.Row("r", "BERT", {"bilstm": "no"}),
            'row r: finetune: bilstm must be true or false, not "no"',
        ),
        (
            lambda: column.changed(folds=2, finetune=None),
            "SNLI: folds and search are for fine-tuning",
        ),
        (lambda: column.changed(question=asked), "column SNLI: give finetune or question"),
        (lambda: dataclasses.replace(trained, optional=True), "optional go with checkpoint"),
        (
            lambda: dataclasses.replace(
                trained, pretrain=dataclasses.replace(trained.pretrain, vocab="x")
            ),
            "variant BERT: vocab is the corpus's",
        ),
        (lambda: column.changed(model="tiny-wikipedia"), "SNLI: model is the row's variant's"),
        (lambda: column.changed(search=({"model": "x"},)), "SNLI: search: model follows from"),
        (
            lambda: ablation_parts.Row("r", "BERT", {"bilstn": True}),
            r'row r: finetune: unknown field bilstn \(did you mean "bilstm"',
        ),
        (lambda: column.changed(search=({"seed": 5},)), "SNLI: search: seed follows from"),
        (lambda: column.changed(search=({"data_dir": "x"},)), "search: data_dir follows from"),
        (lambda: ablation_parts.Row("r", "BERT", {"seed": 77}), "row r: finetune: seed follows"),
        (lambda: ablation_parts.Row("r", "BERT", {"model": "other"}), "finetune: model='other'"),
        (lambda: dataclasses.replace(trained, seeds=(0, 1)), "BERT: its seeds must be from 1 on"),
        (lambda: HELDOUT_LOSS.changed(search=({"dropout": 0.1},)), "search are for fine-tuning"),
        (lambda: HELDOUT_LOSS.changed(learning_rate=1e-3), "learning_rate is for fine-tuning"),
        (lambda: column.changed(bilstm="maybe"), "SNLI: finetune: bilstm must be true or false"),
        (lambda: claims.Comparison("SNLI", "a", "b", "grater"), "kind='grater'; it is one of"),
        (lambda: claims.Comparison("SNLI", "a", "b", claims.SHARE), "row `whole` go together"),
        (lambda: claims.Comparison("SNLI", "a", "b", whole="c"), "row `whole` go together"),
        (lambda: claims.Comparison("SNLI", "a", "a"), "comparison of a and a: a is there twice"),
        (lambda: dataclasses.replace(trained, seeds=3), "variant BERT: seeds=3: give a tuple of"),
        (lambda: column.changed(seeds=("1",)), r"SNLI: seeds=\('1',\): give a tuple of whole"),
        (lambda: ablation_parts.Row("r", "BERT", {"vocab": "x"}), "finetune: vocab follows from"),
        (lambda: ablation_parts.Row("r", "BERT", {"max_dev_examples": 9}), "max_dev_examples foll"),
    ):
        with pytest.raises(UserError, match=message):
            make()


def test_rows_of_claims_and_curves_are_known_before_anything_runs():
    ablation = load_config("table5:smoke")
    rows, column = [row.label for row in ablation.rows], ablation.columns[0].label
    share = claims.Comparison(column, *rows[:2], claims.SHARE, whole="nobody")
    with pytest.raises(UserError, match="claim c: row='nobody'; it is one of BERT, "):
        dataclasses.replace(ablation, claims=(claims.Claim("c", "", "", (share,)),))

    def curve(*labels, **fields):
        line = ablation_parts.Curve("line", labels, column, **fields)
        return dataclasses.replace(ablation, curves=(line,))

    with pytest.raises(UserError, match="curve line: row='nobody'; it is one"):
        curve(rows[0], less=("nobody",))
    rule = ablation_parts.Variant("rule", checkpoint="tf-idf")
    ablation = dataclasses.replace(
        ablation,
        variants=(*ablation.variants, rule),
        rows=(*ablation.rows, ablation_parts.Row("a rule", "rule")),
    )
    assert curve(*rows[:2]).curves
    with pytest.raises(UserError, match="curve line: a rule has no steps of pre-training"):
        curve("a rule")


def test_what_no_table_can_run_is_refused_before_it_runs():
    table = load_config("table5:smoke")
    row = table.rows[0]
    kept = dataclasses.replace(table.variants[0].pretrain, snapshots=(5,))
    random = (*table.variants[:-1], ablation_parts.Variant.random(kept, (1,)))
    early = (ablation_parts.Row("early", "random", snapshot=5),)
    heldout = (ablation_parts.Text(("sample",), heldout=True),)
    sms, first = table.column("SMS spam"), table.variants[0]
    other_dev = ablation_parts.Row("other dev", row.variant, {
        "task_options": {"dev_file": "train.tsv"}})  # fmt: skip
    phases = (dataclasses.replace(first.pretrain.phases[0], max_seq_length=32),)
    sizes = dataclasses.replace(first.pretrain.bert_config, max_position_embeddings=63)
    shorter, narrow = (
        dataclasses.replace(first, pretrain=dataclasses.replace(first.pretrain, **fields))
        for fields in ({"phases": phases}, {"bert": sizes})
    )
    two = (ablation_parts.Text(("sample:burnett*",)),
           ablation_parts.Text(("sample:bennet*",), heldout=True))  # fmt: skip
    on_vectors = ablation_parts.Variant("v", checkpoint="x", learnt="cbow")
    for changes, message in (
        ({"variants": random, "rows": early}, "early: step 5 is none of .* it has none"),
        ({"corpus": dataclasses.replace(table.corpus, texts=heldout)}, "has no text for training"),
        ({"corpus": dataclasses.replace(table.corpus, held_out=0.0)}, "text for evaluation: held"),
        ({"variants": (*table.variants, on_vectors)},
         "variant v: learnt=cbow: its checkpoint is not a kind of model on vectors"),
        ({"corpus": dataclasses.replace(table.corpus, texts=two)},
         "text for evaluation: held_out"),
        ({"rows": (dataclasses.replace(row, snapshot=7),)}, "BERT: step 7 is none of"),
        ({"exports": (ablation_parts.Export(row.label, "cloze"),)}, "is fine-tuned in the column"),
        ({"corpus": dataclasses.replace(table.corpus, vocab="/no/vocab.txt")}, "no such file"),
        ({"curves": (ablation_parts.Curve("c", (row.label,), "SNLI", (row.label,) * 2),)},
         "curve c: 2 rows to subtract from 1"),
        ({"records": (dataclasses.replace(table.records[0], held_out=0.1),)},
         "records length 64: held_out and do_lower_case are the corpus's"),
        ({"claims": 2 * table.claims[:1]}, "table5: claims: .* is there twice"),
        ({"exports": 2 * (ablation_parts.Export(row.label, "SNLI"),)}, "SNLI/BERT is there twice"),
        ({"columns": (table.column("SNLI").changed(data_dir="sample:"),)},
         "the sample: .* is one of names"),
        ({"rows": ()}, "table5/smoke: a table has rows and columns; give at least one"),
        ({"columns": ()}, "table5/smoke: a table has rows and columns"),
        ({"corpus": dataclasses.replace(table.corpus, texts=(*table.corpus.texts, *heldout),
                                        held_out=0.0)}, "is for training and held out"),
        ({"columns": (sms.changed(metric="acuracy"),)},
         "column SMS spam, row BERT: metric='acuracy'; it is one of accuracy"),
        ({"columns": (sms.changed(max_seq_length=4096),)},
         "column SMS spam, row BERT: --config.max_seq_length=4096: the model has positions for"),
        ({"columns": (sms.changed(search=({"freeze": "no_such"},)),)},
         "column SMS spam, row BERT: --config.freeze=no_such"),
        ({"rows": (row, other_dev), "columns": (sms,)},
         "column SMS spam, row other dev: with task_options=.'dev_file': 'train.tsv'. it is"),
        ({"columns": (sms.changed(search=({"learning_rate": 1e-3},)),),
          "exports": (ablation_parts.Export(row.label, sms.label),)}, "has search or folds"),
        ({"exports": (ablation_parts.Export(row.label, "SQuAD"),)},
         "column SQuAD, row BERT: a table exports classifiers; squad_v1.1 is span"),
        ({"variants": (shorter,), "rows": (row,)},
         "variant BERT: max_seq_length=32: its records have sequences of 64 tokens"),
        ({"variants": (narrow,), "rows": (row,)},
         "variant BERT: its model has positions for 63 tokens, its records 64"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=message):
            plan_table(dataclasses.replace(table, **{"claims": (), "exports": ()} | changes))


def test_rows_may_see_more_of_the_same_dev_examples():
    table = load_config("table5:smoke")
    whole = ablation_parts.Row("documents", "BERT", {"task_options": {"context": "document"}})
    parts = {"rows": (table.rows[0], whole), "columns": (table.column("names"),)}
    plan = plan_table(dataclasses.replace(table, **parts, claims=(), exports=()))
    first, second = (plan.runs[row, "names"][0].cell for row in (table.rows[0].label, "documents"))
    assert first != second
