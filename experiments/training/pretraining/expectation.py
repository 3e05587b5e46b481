"""The lines that a pre-training prints at its start: steps, tokens and the loss to expect."""

import numpy as np

# Million tokens -> training loss of Table 5's models of 2 layers, 128 wide, with 8,192 pieces
# (experiments/results/table5/night, first seeds).
LOSSES = {
    "masked_lm": {0.2: 7.25, 1.02: 6.86, 1.84: 6.41, 5.12: 5.31, 10.04: 4.67, 32.77: 3.97},
    "next_token": {0.2: 7.52, 1.02: 5.93, 1.84: 5.58, 5.12: 5.55, 10.04: 5.15, 32.77: 4.70},
}
_COMMAS = 6.0  # above this loss a masked LM predicts the most frequent pieces everywhere


def lines(phases, objective: str = "") -> list[str]:
    """Return a line on the steps of each phase, and lines on the loss to expect after them.

    Args:
      phases: of `PretrainingBatches`.
      objective: name of a new model's language model; "" where no loss is to be expected.
    """
    notes, tokens = [], 0
    for phase in phases:
        steps, length = phase.last - phase.first, phase.records.max_seq_length
        sequences = steps * phase.batch_size
        read = sequences * length
        tokens += read
        passes = sequences / phase.records.examples
        copies = (phase.records.manifest.get("options") or {}).get("dupe_factor") or 1
        of_text = f", {passes * copies:.1f} over the text" if copies > 1 else ""
        notes.append(
            f"{steps:,} steps of {phase.batch_size:,} sequences of {length} tokens: "
            f"{read / 1e6:,.{1 if read >= 1e5 else 3}f} M tokens, {passes:.1f} passes over "
            f"{phase.records.examples:,} sequences{of_text}"
        )
    if curve := LOSSES.get(objective):
        known, losses = list(curve), list(curve.values())
        loss = np.interp(np.log(max(tokens, 1) / 1e6), np.log(known), losses)
        bound = "below" if tokens > 1e6 * known[-1] else "about"
        notes.append(
            f"loss to expect at the end: {bound} {loss:.1f}, as of Table 5's models (2 layers, 128 "
            f"wide, 8,192 pieces), which came to {losses[-1]:.1f} after {known[-1]:.0f} M tokens"
        )
        if objective == "masked_lm" and loss > _COMMAS:
            notes.append(
                "after so few tokens a model fills masks with commas and other frequent pieces; "
                "--config.phases.0.num_train_steps= sets more steps"
            )
    return notes
