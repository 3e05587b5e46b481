"""Checks of what the parts of an `Ablation` say of each other."""

from official_bert.common.errors import UserError, check_choice, check_once


def check(ablation) -> None:
    """Raise UserError where a part names another one that is not there, or does not fit it."""
    _check_rows(ablation)
    _check_records(ablation)
    _check_exports(ablation)
    _check_claims(ablation)
    _check_curves(ablation)


def _check_rows(ablation):
    variants = [variant.name for variant in ablation.variants]
    for row in ablation.rows:
        check_choice("variant", row.variant, variants, f"row {row.label}")
        variant = ablation.variant(row.variant)
        if row.finetune.get("model") and (variant.random_init or variant.checkpoint):
            raise UserError(
                f"row {row.label}: `model` is for models of pre-trainings; {variant.name} is "
                f"{variant.checkpoint or 'random weights'}"
            )
        kept = variant.pretrain.snapshots if variant.trains else ()
        if row.snapshot and row.snapshot not in kept:
            raise UserError(
                f"row {row.label}: step {row.snapshot} is none of the snapshots of "
                f"{variant.name}: {', '.join(map(str, kept)) or 'it has none'}"
            )


def _check_records(ablation):
    records = [spec.name for spec in ablation.records]
    for spec in ablation.records:
        if (spec.held_out, spec.do_lower_case) != (0.0, True):
            raise UserError(f"records {spec.name}: held_out and do_lower_case are the corpus's")
    for column in ablation.columns:
        if column.question:
            name = column.question.records
            check_choice("records", name, records, f"column {column.label}")
    for variant in ablation.variants:
        for phase in variant.pretrain.phases if variant.trains else ():
            check_choice("records", phase.records, records, f"variant {variant.name}")


def _check_exports(ablation):
    check_once((f"{export.column}/{export.row}" for export in ablation.exports), "exports")
    for export in ablation.exports:
        _check_row(ablation, export.row, "export")
        _check_column(ablation, export.column, "export")
        column = ablation.column(export.column)
        if not column.finetune:
            raise UserError(f"export: nothing is fine-tuned in the column {export.column}")
        if column.search or column.folds:
            raise UserError(f"export: {export.column} has search or folds, so not one model alone")


def _check_claims(ablation):
    for claim in ablation.claims:
        for comparison in claim.comparisons:
            _check_column(ablation, comparison.column, f"claim {claim.name}")
            for label in comparison.rows:
                _check_row(ablation, label, f"claim {claim.name}")


def _check_curves(ablation):
    for curve in ablation.curves:
        where = f"curve {curve.label}"
        _check_column(ablation, curve.column, where)
        if curve.less and len(curve.less) != len(curve.rows):
            counts = f"{len(curve.less)} rows to subtract from {len(curve.rows)}"
            raise UserError(f"{where}: {counts}; give one for each")
        for label in (*curve.rows, *curve.less):
            _check_row(ablation, label, where)
        for label in curve.rows:
            if not ablation.variant(ablation.row(label).variant).pretrain:
                raise UserError(f"{where}: {label} has no steps of pre-training")


def _check_row(ablation, label, where):
    check_choice("row", label, [row.label for row in ablation.rows], where)


def _check_column(ablation, label, where):
    check_choice("column", label, [column.label for column in ablation.columns], where)
