"""The options of pre-training records."""

from dataclasses import dataclass

from data_prep.corpus import languages
from data_prep.corpus.text_files import INVALID_UTF8
from data_prep.pretraining.masking import SPANS, MaskingRates
from data_prep.pretraining.next_sentence import PACKINGS
from official_bert.common.errors import UserError, check_choice

# Options that a token store depends on.
OF_STORE = (
    "do_lower_case",
    "strip_accents",
    "tokenize_chinese_chars",
    "held_out",
    "invalid_utf8",
    "language_exponent",
    "segmented",
)


@dataclass(frozen=True)
class RecordOptions:
    """Options that decide the content of records, by the original's names where it has them.

    Attributes:
      max_seq_length: tokens of a row with [CLS], two [SEP] and padding; 5 to 4096.
      max_predictions_per_seq: slots for masked tokens, max_seq_length * masked_lm_prob or more: 20
        at 128, 77 at 512 (19 would do at 128; the paper's code has 20).
      masked_lm_prob: share of a row's tokens to predict; 0 for models that read left to right,
        whose vocabulary may lack [MASK].
      short_seq_prob: share of documents cut into shorter rows, against a mismatch between
        pre-training and fine-tuning.
      dupe_factor: number of passes over the corpus, each with other pairs and masks.
      do_whole_word_mask: masks all pieces of a word or none.
      random_seed: of pairs, masks and order.
      mask_rate: share of the tokens to predict that becomes [MASK] (Table 8).
      same_rate: share of them that stays.
      random_rate: share of them that becomes a random token.
      dynamic_masking: leaves rows unmasked; `pretraining_dataset` masks them anew in every epoch.
      compression: "" or "GZIP".
      examples_per_shard: approximate number of examples in a file.
      num_shards: number of files; 0 follows from examples_per_shard.
      do_lower_case: lower-cases, for uncased vocabularies.
      strip_accents: strips accents; None does as do_lower_case. Must suit the vocabulary.
      tokenize_chinese_chars: makes every ideograph a word of its own; must suit the vocabulary.
      held_out: share of documents whose records go to the folder `heldout` instead.
      invalid_utf8: "error", "replace" or "ignore" bytes that are not UTF-8; the lines are counted.
      language_exponent: below 1, documents of small languages are taken several times and some of
        large ones left out (`corpus.languages`); file sizes count, so pack all files or none.
      segmented: a segmenter has put blanks between words of ideographs; do_whole_word_mask masks
        such words (`SegmentedEncoder`). Not with dynamic_masking.
      spans: "geometric" or "ngrams" masks runs of whole words (`masking.SPANS`), "" single ones.
        Not with dynamic_masking.
      packing: content of a row (`PACKINGS`): "segments" (BERT), "consecutive" segments, of which
        the second is hardly ever random (ALBERT), "pairs" of sentences, or "single", sentences of
        one document without a second segment (RoBERTa, SpanBERT).
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    do_whole_word_mask: bool = False
    random_seed: int = 12345
    mask_rate: float = 0.8
    same_rate: float = 0.1
    random_rate: float = 0.1
    dynamic_masking: bool = False
    compression: str = ""
    examples_per_shard: int = 32768
    num_shards: int = 0
    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True
    held_out: float = 0.0
    invalid_utf8: str = "error"
    language_exponent: float = 1.0
    segmented: bool = False
    spans: str = ""
    packing: str = "segments"

    def __post_init__(self):
        for name, low, high in (
            ("max_seq_length", 5, 4096),
            ("max_predictions_per_seq", 1, 4096),
            ("masked_lm_prob", 0, 1),
            ("short_seq_prob", 0, 1),
            ("dupe_factor", 1, 65535),
            ("examples_per_shard", 1, 1 << 31),
            ("num_shards", 0, 99_999),
            ("held_out", 0, 0.5),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise UserError(f"{name}={value}: must be from {low} to {high}")
        check_predictions(self.max_seq_length, self.max_predictions_per_seq, self.masked_lm_prob)
        if self.compression not in ("", "GZIP"):
            raise UserError(f"compression={self.compression!r}: must be '' or 'GZIP'")
        check_choice("invalid_utf8", self.invalid_utf8, INVALID_UTF8)
        if self.segmented and self.dynamic_masking:
            raise UserError("segmented and dynamic_masking: rows do not keep the segmenter's words")
        if self.spans not in ("", *SPANS) or (self.spans and self.dynamic_masking):
            raise UserError(
                f"spans={self.spans!r}: must be '', {' or '.join(map(repr, SPANS))}, and '' with "
                "dynamic_masking"
            )
        check_choice("packing", self.packing, PACKINGS)
        languages.check(self.language_exponent)
        MaskingRates(self.mask_rate, self.same_rate, self.random_rate)


def check_predictions(length: int, slots: int, prob: float) -> None:
    """Check that full rows have room for the predictions.

    Raises:
      UserError: full rows have fewer slots than the wanted share of predicted tokens.
    """
    needed = round(length * prob)
    if needed > slots:
        raise UserError(
            f"max_predictions_per_seq={slots} cuts masked_lm_prob={prob} to {slots / length:.1%}: "
            f"rows of {length} tokens need max_predictions_per_seq={needed}"
        )
