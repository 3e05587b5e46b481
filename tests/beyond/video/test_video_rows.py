"""VideoBERT's rows by hand: texts, clips, and both; masks; clips that are another segment's."""

import numpy as np
import pytest

from data_prep.pretraining.random_streams import RandomStream
from experiments.beyond.video.rows import Tokens, VideoRows
from official_bert.common.errors import UserError

# [PAD], [CLS], [SEP], [MASK], pieces 4 to 9, [>] 10, visual words 11 to 19.
TOKENS = Tokens(pad=0, cls=1, sep=2, mask=3, between=10, vocab_size=20)
VIDEOS = [
    [([4, 5, 6], [11, 12]), ([], [13, 13, 14, 15, 16, 17]), ([7], [18])],
    [([8, 9], [19, 19])],
]
EACH, LENGTH = 400, 24


def rows_of(**options):
    return VideoRows(VIDEOS, TOKENS, EACH, LENGTH, **options)


def test_rows():
    assert TOKENS.row([4, 5], [], 8) == ([1, 4, 5, 2], [0, 0, 0, 0])
    assert TOKENS.row([], [11, 12], 8) == ([1, 11, 12, 2], [0, 1, 1, 1])
    both = TOKENS.row([4, 5], [11, 12], 8)
    assert both == ([1, 4, 5, 10, 11, 12, 2], [0, 0, 0, 0, 1, 1, 1])
    # Each has half of five places; one takes what the other leaves.
    assert TOKENS.row([4, 5, 6, 7, 8], [11] * 5, 8)[0] == [1, 4, 5, 6, 10, 11, 11, 2]
    assert TOKENS.row([4], [11] * 5, 8)[0] == [1, 4, 10, 11, 11, 11, 11, 2]
    assert TOKENS.row([4] * 9, [11], 8)[0] == [1, 4, 4, 4, 4, 10, 11, 2]
    padded = TOKENS.pad_rows([both], 8)
    assert padded["input_ids"].tolist() == [[1, 4, 5, 10, 11, 12, 2, 0]]
    assert padded["input_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 0]]


def whole(batch):
    """Return the rows before masking, without padding."""
    ids = batch["input_ids"].copy()
    for row, places, pieces, weights in zip(
        ids, batch["masked_lm_positions"], batch["masked_lm_ids"], batch["kept"], strict=True
    ):
        row[places[weights]] = pieces[weights]
    return [row[row > 0].tolist() for row in ids]


def made(number=1, **options):
    """Return a batch; what is masked in it, whether it is predicted or not, is told by
    `masked_lm_ids`, where padding has 0."""
    batch = rows_of(**options).batch(number)
    return batch | {"kept": batch["masked_lm_ids"] > 0}


def test_a_batch_has_three_kinds():
    batch = made()
    told, shown, both = (whole(batch)[i * EACH : (i + 1) * EACH] for i in range(3))
    assert all(max(row) < 10 for row in told)
    assert all(min(row[1:-1]) > 10 for row in shown)
    assert all(row.count(10) == 1 for row in both)
    assert batch["alignment_weights"][:, 0].tolist() == [0] * 2 * EACH + [1] * EACH
    assert batch["alignment_labels"][2 * EACH :, 0].tolist() == [0, 1] * (EACH // 2)
    # The first segment alone or with the next one, which has no text; the last of a video alone.
    assert [1, 4, 5, 6, 2] in told and [1, 8, 9, 2] in told and [1, 7, 8, 9, 2] not in told
    assert [1, 11, 12, 2] in shown, "no clip is left out"
    assert [1, 13, 14, 16, 2] in shown, "every second"
    assert [1, 11, 12, 13, 13, 14, 15, 16, 17, 2] in shown, "joined"
    again = rows_of().batch(1)
    assert all((again[name] == batch[name]).all() for name in again)
    assert (rows_of().batch(2)["input_ids"] != again["input_ids"]).any()


@pytest.mark.parametrize("joint_masks", [True, False])
def test_masks(joint_masks):
    batch = made(joint_masks=joint_masks)
    ids, places = batch["masked_lm_ids"], batch["masked_lm_positions"]
    for row, (length, count) in enumerate(
        zip(batch["input_mask"].sum(axis=1), batch["kept"].sum(axis=1), strict=True)
    ):
        wanted = max(1, round(0.15 * length))
        assert count == (wanted if joint_masks or row < 2 * EACH else 0)
        assert (places[row, :count] > 0).all() and (places[row, :count] < length - 1).all()
    assert not np.isin(ids[batch["kept"]], [1, 2, 3, 10]).any(), "no special token"
    weights = batch["masked_lm_weights"]
    np.testing.assert_array_equal(weights[: 2 * EACH] > 0, batch["kept"][: 2 * EACH])
    own = batch["alignment_labels"][2 * EACH :] > 0
    np.testing.assert_array_equal(weights[2 * EACH :] > 0, batch["kept"][2 * EACH :] & own)
    assert (weights[2 * EACH :].sum() > 0) == joint_masks


def test_clips_of_others_are_never_the_same():
    # Most segments of the other video show the same, so that drawing one is not enough.
    videos = [[([4], [11]), ([], [12])], [*[([], [11])] * 20, ([5], [13, 14])]]
    rows, stream = VideoRows(videos, TOKENS, 8, LENGTH), RandomStream(0)
    own = {tuple(rows.pair(0, True, stream)[1]) for _ in range(100)}
    assert own == {(11,), (11, 12)}, "joined or not; of two clips the first always stays"
    alone = VideoRows([videos[0][:1], videos[1]], TOKENS, 8, LENGTH)
    found = {tuple(alone.pair(0, False, stream)[1]) for _ in range(300)}
    assert (11,) not in found and (11, 11) in found and (13, 14) in found
    assert not any(word == 12 for words in found for word in words), "none of its own video"


def test_what_teaches_nothing_is_refused():
    with pytest.raises(UserError, match="no segment of train has a text"):
        VideoRows([[([], [11])], [([], [12])]], TOKENS, 2, LENGTH)
    with pytest.raises(UserError, match="train has one video"):
        VideoRows([[([4], [11]), ([5], [12])]], TOKENS, 2, LENGTH)
    with pytest.raises(UserError, match="the same visual words"):
        VideoRows([[([4], [11])], [([5], [11])]], TOKENS, 2, LENGTH).batch(0)
