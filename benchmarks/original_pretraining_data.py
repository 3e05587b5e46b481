"""The original's way to make pre-training examples, one token at a time, as a slow reference.

Written from the description of the algorithm: the corpus and every example are Python lists in
memory, each example is masked by itself, and each record is a tf.train.Example. The benchmark
measures it beside data_prep, and tests compare the two in distribution.
"""

import collections
import random

Example = collections.namedtuple(
    "Example", "tokens segment_ids is_random positions labels document random_document"
)


def read_documents(paths, tokenizer):
    """Return all documents of the files as lists of sentences, each a list of pieces."""
    documents = [[]]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = line.strip()
                if not line:
                    documents.append([])
                pieces = tokenizer.tokenize(line)
                if pieces:
                    documents[-1].append(pieces)
        documents.append([])
    return [document for document in documents if document]


def make_examples(
    documents,
    vocab,
    max_seq_length=128,
    dupe_factor=1,
    short_seq_prob=0.1,
    masked_lm_prob=0.15,
    max_predictions=20,
    whole_word=False,
    seed=12345,
    masked=True,
):
    """Return all examples, shuffled. `masked=False` leaves the masking out (tests of the pairs
    alone)."""
    generator = random.Random(seed)
    generator.shuffle(documents)
    examples = []
    for _ in range(dupe_factor):
        for index in range(len(documents)):
            for pair in segment_pairs(
                documents, index, max_seq_length - 3, short_seq_prob, generator
            ):
                examples.append(
                    _example(pair, vocab, masked_lm_prob, max_predictions, whole_word, generator)
                    if masked
                    else pair
                )
    generator.shuffle(examples)
    return examples


def segment_pairs(documents, index, max_tokens, short_seq_prob, generator):
    """Return the pairs of one document: (A, B, is_random, document, random document)."""
    document = documents[index]
    target = max_tokens
    if generator.random() < short_seq_prob:
        target = generator.randint(2, max_tokens)
    pairs, chunk, length, place = [], [], 0, 0
    while place < len(document):
        chunk.append(document[place])
        length += len(document[place])
        if place == len(document) - 1 or length >= target:
            cut = generator.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first = [piece for sentence in chunk[:cut] for piece in sentence]
            other = index
            is_random = len(chunk) == 1 or generator.random() < 0.5
            if is_random:
                for _ in range(10):
                    other = generator.randint(0, len(documents) - 1)
                    if other != index:
                        break
                second = []
                for sentence in documents[other][generator.randint(0, len(documents[other]) - 1) :]:
                    second.extend(sentence)
                    if len(second) >= target - len(first):
                        break
                place -= len(chunk) - cut
            else:
                second = [piece for sentence in chunk[cut:] for piece in sentence]
            while len(first) + len(second) > max_tokens:
                longer = first if len(first) > len(second) else second
                if generator.random() < 0.5:
                    del longer[0]
                else:
                    longer.pop()
            pairs.append((first, second, is_random, index, other))
            chunk, length = [], 0
        place += 1
    return pairs


def _example(pair, vocab, masked_lm_prob, max_predictions, whole_word, generator):
    first, second, is_random, document, other = pair
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    words = []
    for place, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole_word and words and token.startswith("##"):
            words[-1].append(place)
        else:
            words.append([place])
    generator.shuffle(words)
    output = list(tokens)
    budget = min(max_predictions, max(1, int(round(len(tokens) * masked_lm_prob))))
    chosen = []
    for word in words:
        if len(chosen) >= budget:
            break
        if len(chosen) + len(word) > budget:
            continue
        for place in word:
            if generator.random() < 0.8:
                output[place] = "[MASK]"
            elif generator.random() >= 0.5:
                output[place] = vocab[generator.randint(0, len(vocab) - 1)]
            chosen.append(place)
    chosen.sort()
    labels = [tokens[place] for place in chosen]
    return Example(output, segments, is_random, chosen, labels, document, other)


def write_records(examples, ids, path, max_seq_length=128, max_predictions=20):
    """Write examples as tf.train.Example messages, built value by value. `ids`: piece to id."""
    import tensorflow as tf

    def integers(values, length):
        values = list(values) + [0] * (length - len(values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    with tf.io.TFRecordWriter(path) as writer:
        for example in examples:
            labels = [ids[token] for token in example.labels]
            weights = [1.0] * len(example.positions)
            weights += [0.0] * (max_predictions - len(weights))
            features = {
                "input_ids": integers([ids[token] for token in example.tokens], max_seq_length),
                "input_mask": integers([1] * len(example.tokens), max_seq_length),
                "segment_ids": integers(example.segment_ids, max_seq_length),
                "masked_lm_positions": integers(example.positions, max_predictions),
                "masked_lm_ids": integers(labels, max_predictions),
                "masked_lm_weights": tf.train.Feature(float_list=tf.train.FloatList(value=weights)),
                "next_sentence_labels": integers([int(example.is_random)], 1),
            }
            message = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(message.SerializeToString())
