"""The options that decide the dynamic masks of a set of records, as numbers."""

import os
from dataclasses import dataclass

import numpy as np

from data_prep.jobs import storage
from official_bert.common.json_files import field


@dataclass(frozen=True)
class MaskingRules:
    """The options of records with dynamic masking, as numbers.

    Attributes:
      length: tokens of a row; wanted_slots: predictions of a row; slots: those that a row has room
        for.
      prob: share of the tokens to predict.
      mask_below, same_below: a uniform number below the first makes [MASK], else below the second
        keeps the token, else draws one.
      vocab_size, cls, sep, mask: of the vocabulary.
      continues: bool [vocab_size], which entries continue a word; None without whole-word masking.
    """

    length: int
    wanted_slots: int
    slots: int
    prob: float
    mask_below: float
    same_below: float
    vocab_size: int
    cls: int
    sep: int
    mask: int
    continues: np.ndarray | None

    @property
    def wanted(self) -> np.ndarray:
        """int32 [length + 1]: how many places a row of so many tokens has to predict."""
        # In double precision, so that halves are rounded as the original rounds them.
        share = np.round(np.arange(self.length + 1) * np.float64(self.prob))
        return np.clip(share.astype(np.int32), 1, self.wanted_slots)

    @property
    def numbers(self) -> int:
        """Random numbers that a row takes."""
        return self.length + 2 * self.slots

    @classmethod
    def of(cls, records) -> "MaskingRules":
        """Those of `data_prep.records.Records`; the vocabulary lies in their folder.

        Raises:
          UserError: the manifest lacks an option, or the vocabulary is another one.
        """
        path = os.path.join(records.folder, "manifest.json")
        options = field(records.manifest, "options", dict, path)
        for name in ("masked_lm_prob", "mask_rate", "same_rate"):
            field(options, name, (int, float), f"{path}: options")
        digest = field(records.manifest, "vocab_sha256", str, path)
        tokenizer = storage.load_tokenizer(storage.find_vocabulary(records.folder), digest)
        whole_words = field(options, "do_whole_word_mask", bool, f"{path}: options")
        return cls(
            records.max_seq_length,
            records.max_predictions_per_seq,
            min(records.max_predictions_per_seq, records.max_seq_length),
            options["masked_lm_prob"],
            options["mask_rate"],
            options["mask_rate"] + options["same_rate"],
            tokenizer.vocab_size,
            tokenizer.cls_id,
            tokenizer.sep_id,
            tokenizer.mask_id,
            tokenizer.continues if whole_words else None,
        )
