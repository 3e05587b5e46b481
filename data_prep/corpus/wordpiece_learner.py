"""Learning WordPieces from word counts, from the top down.

The paper's vocabulary came from Google's internal learner (Wu et al. 2016), which was never
published. This is the top-down algorithm that TensorFlow Text documents for BERT vocabularies:

1. Count every substring of every word from every start (word-initial ones apart from `##` ones).
2. From the longest to the shortest, keep a substring whose count is at least a threshold, and
   subtract its count from all its prefixes: text that a longer piece covers does not count for
   them.
3. Cut every word greedily with the kept pieces, and count again only the substrings that begin at a
   cut; repeat from 2. Characters are always kept. The threshold is searched so that the vocabulary
   gets its size.

Here the substrings are the nodes of a trie, built once, level by level, with numpy: a node's parent
is its longest prefix, so step 2 is one pass over the levels, and step 3 a histogram of the same
positions. Everything is exact integer arithmetic in a fixed order: same counts, same pieces.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from official_bert.common.errors import UserError


class Alphabet(NamedTuple):
    """The characters a vocabulary is built from, and where they occur."""

    characters: list[str]  # sorted by code point
    inside: list[str]  # those that occur after the first character of a word: they need "##c"


class _Level(NamedTuple):
    """All substrings of one length that are frequent enough, as trie nodes.

    M occurrences of N nodes: occurrence i starts at character `positions[i]` of the text and is
    node `nodes[i]`; node j extends node `parents[j]` of the level before by `characters[j]`.
    """

    positions: np.ndarray  # int32 [M]
    nodes: np.ndarray  # int32 [M]
    parents: np.ndarray  # int64 [N]
    characters: np.ndarray  # int64 [N], position in the alphabet


def find_alphabet(counts: Mapping[str, int], coverage: float) -> Alphabet:
    """Return the most frequent characters that make up the share `coverage` of the text.

    A word with any other character will be [UNK]. Ties go by code point.
    """
    total, inside = {}, set()
    for word, count in counts.items():
        for character in word:
            total[character] = total.get(character, 0) + count
        inside.update(word[1:])
    wanted, chosen = coverage * sum(total.values()), []
    for character in sorted(total, key=lambda character: (-total[character], character)):
        if wanted <= 0:
            break
        chosen.append(character)
        wanted -= total[character]
    return Alphabet(sorted(chosen), sorted(inside.intersection(chosen)))


def learn_pieces(
    counts: Mapping[str, int], alphabet: Alphabet, num_pieces: int, num_iterations: int = 4
) -> list[str]:
    """Return the pieces of two or more characters, and the alphabet's `##c`, most used first.

    Args:
      counts: count of each word.
      alphabet: from `find_alphabet`; words with other characters are left out.
      num_pieces: number of pieces, without the alphabet's `##c`.
      num_iterations: number of repetitions of steps 2 and 3 above.

    Returns:
      `num_pieces` + len(alphabet.inside) pieces, sorted by how often the greedy tokeniser uses them
      on `counts`, ties by code points.

    Raises:
      UserError: the words do not have so many different substrings.
    """
    text = _Text(counts, alphabet)
    # A substring rarer than the final threshold is never kept, nor are its extensions. The first
    # guess prunes the trie; where it pruned too much, a lower one follows.
    floor = max(1, text.total // (50 * max(num_pieces, 1)))
    while True:
        levels = text.trie(floor)
        keeps = _choose(text, levels, num_pieces, num_iterations, floor)
        if keeps is not None:
            break
        if floor == 1:
            most = sum(len(level.parents) for level in levels[1:])
            raise UserError(
                f"the text is too small for {num_pieces:,} pieces of two or more characters "
                f"({most:,} different ones occur in it, few of them useful); choose a smaller "
                f"vocab_size"
            )
        floor = max(1, floor // 8)
    return text.pieces_by_use(levels, keeps)


def _choose(text, levels, num_pieces, num_iterations, floor):
    """Return for each level which nodes are pieces, bool [N]; None if `floor` leaves too few."""
    starts, keeps = None, None  # every position, in the first round
    for _ in range(num_iterations):
        counts = [text.node_counts(level, starts) for level in levels]
        better = _keep_most_useful(levels, counts, num_pieces, floor)
        if better is None:
            # In a tiny text few substrings begin at cuts; then the round before stands.
            return keeps if floor == 1 else None
        keeps, starts = better, text.cuts(levels, better)
    return keeps


def _keep_most_useful(levels, counts, num_pieces, floor):
    """Take step 2 with the highest threshold that leaves enough nodes; keep exactly
    `num_pieces`."""
    low, high = floor, int(max(count.max(initial=0) for count in counts)) + 1
    if _kept(levels, counts, low)[0] < num_pieces:
        return None
    while high - low > 1:  # enough nodes at `low`, too few at `high`
        middle = (low + high) // 2
        if _kept(levels, counts, middle)[0] >= num_pieces:
            low = middle
        else:
            high = middle
    surplus, useful = _kept(levels, counts, low)
    surplus -= num_pieces
    # The least useful nodes are dropped; among equals the shortest, and among these continuations
    # before beginnings of words (the order of the nodes).
    order = sorted(
        (value, depth, node)
        for depth, level in enumerate(useful[1:], start=1)
        for node, value in enumerate(level)
        if low <= value < 2 * low + 1
    )
    keeps = [level >= low for level in useful]
    keeps[0][:] = True
    for _, depth, node in order[:surplus]:
        keeps[depth][node] = False
    return keeps


def _kept(levels, counts, threshold):
    """Return the number of nodes below the first level that reach the threshold, and own counts.

    A node's own count lacks the counts of kept longer substrings.
    """
    number, useful = 0, [None] * len(levels)
    covered = np.zeros(len(levels[-1].parents), np.int64)
    for depth in range(len(levels) - 1, -1, -1):
        own = counts[depth] - covered
        useful[depth] = own
        if depth:
            keep = own >= threshold
            number += int(keep.sum())
            covered += np.where(keep, own, 0)
            covered = _histogram(levels[depth].parents, covered, len(levels[depth - 1].parents))
    return number, useful


def _histogram(bins, weights, length):
    # bincount adds in float64, which is exact for whole numbers up to 2 ** 53.
    return np.bincount(bins, weights, minlength=length).astype(np.int64)


class _Text:
    """The distinct words one after another, as indices of characters in the alphabet."""

    def __init__(self, counts: Mapping[str, int], alphabet: Alphabet):
        self.alphabet = alphabet
        known = set(alphabet.characters)
        words = sorted(word for word in counts if word and known.issuperset(word))
        points = np.array([ord(character) for character in alphabet.characters], np.uint32)
        lengths = np.array([len(word) for word in words], np.int64)
        encoded = "".join(words).encode("utf-32-le", "surrogatepass")
        self.codes = np.searchsorted(points, np.frombuffer(encoded, np.uint32))  # [characters]
        self.ends = np.cumsum(lengths)  # [words]
        self.starts = self.ends - lengths
        word_counts = np.array([counts[word] for word in words], np.int64)
        self.total = int(word_counts.sum())
        self.weights = np.repeat(word_counts, lengths)  # [characters]
        self.remaining = np.repeat(self.ends, lengths) - np.arange(len(self.codes))

    def trie(self, floor: int) -> list[_Level]:
        """Return levels 1, 2, ... of all substrings that occur at least `floor` times."""
        size = len(self.alphabet.characters)
        # Word-initial characters are separate symbols.
        symbols = self.codes.copy()
        symbols[self.starts] += size
        positions = np.arange(len(symbols), dtype=np.int32)
        nodes = symbols.astype(np.int32)
        everything = np.arange(2 * size)
        levels = [_Level(positions, nodes, np.zeros(2 * size, np.int64), everything % size)]
        while len(levels[-1].positions):
            length, above = len(levels), levels[-1]
            longer = self.remaining[above.positions] > length
            positions = above.positions[longer]
            keys = above.nodes[longer].astype(np.int64) * size + self.codes[positions + length]
            found, nodes = np.unique(keys, return_inverse=True)
            frequent = _histogram(nodes, self.weights[positions], len(found)) >= floor
            renumbered = np.cumsum(frequent) - 1
            stays = frequent[nodes]
            found = found[frequent]
            levels.append(
                _Level(
                    positions[stays],
                    renumbered[nodes[stays]].astype(np.int32),
                    found // size,
                    found % size,
                )
            )
        return levels[:-1] if len(levels) > 1 else levels

    def node_counts(self, level: _Level, starts: np.ndarray | None) -> np.ndarray:
        """Count the occurrences of each node of a level, only at the given starts.

        Starts are bool [characters]; None: all.
        """
        positions, nodes = level.positions, level.nodes
        if starts is not None:
            chosen = starts[positions]
            positions, nodes = positions[chosen], nodes[chosen]
        return _histogram(nodes, self.weights[positions], len(level.parents))

    def cuts(self, levels: list[_Level], keeps: list[np.ndarray]) -> np.ndarray:
        """Return where the greedy tokeniser begins pieces, bool [characters]."""
        begins = np.zeros(len(self.codes), bool)
        longest = self._longest_match(levels, keeps)
        positions, ends = self.starts, self.ends
        while len(positions):
            begins[positions] = True
            positions = positions + longest[positions]
            going_on = positions < ends
            positions, ends = positions[going_on], ends[going_on]
        return begins

    def _longest_match(self, levels, keeps):
        longest = np.ones(len(self.codes), np.int64)
        for depth in range(1, len(levels)):
            level = levels[depth]
            longest[level.positions[keeps[depth][level.nodes]]] = depth + 1
        return longest

    def pieces_by_use(self, levels: list[_Level], keeps: list[np.ndarray]) -> list[str]:
        """Return the kept nodes as strings, most used first."""
        begins, longest = self.cuts(levels, keeps), self._longest_match(levels, keeps)
        characters = np.array(self.alphabet.characters, dtype=object)
        size = len(characters)
        inside = set(self.alphabet.inside)
        prefixes = np.concatenate(["##" + characters, characters])  # of every node of the level
        uses = {}
        for depth, level in enumerate(levels):
            if depth:
                prefixes = prefixes[level.parents] + characters[level.characters]
            ends_here = begins[level.positions] & (longest[level.positions] == depth + 1)
            used = _histogram(
                level.nodes[ends_here], self.weights[level.positions[ends_here]], len(prefixes)
            )
            for node in np.flatnonzero(keeps[depth]):
                if depth or (node < size and prefixes[node][2:] in inside):
                    uses[prefixes[node]] = int(used[node])
        return sorted(uses, key=lambda piece: (-uses[piece], piece))
