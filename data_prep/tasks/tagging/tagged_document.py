"""A document as sentences of words, with their tags: the example of every tagger."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TaggedDocument:
    """A document as sentences of words, with their tags.

    `sentences`: tuples of words; `tags`: the tags of each sentence (IOB2 for phrases), or None
    where they are unknown.

    `offsets`: for running text, the (start, end) characters of each word, else None.
    """

    id: str
    sentences: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...] | None = None
    offsets: tuple[tuple[tuple[int, int], ...], ...] | None = None

    @property
    def size(self) -> int:
        """Number of its sentences: as many examples it counts as."""
        return len(self.sentences)

    @property
    def text(self) -> str:
        """Return its words, a sentence a line."""
        return "\n".join(" ".join(words) for words in self.sentences)

    def by_sentence(self) -> list["TaggedDocument"]:
        """Return its sentences, each as a document."""
        return [
            TaggedDocument(
                f"{self.id}/{index}",
                (words,),
                self.tags and (self.tags[index],),
                self.offsets and (self.offsets[index],),
            )
            for index, words in enumerate(self.sentences)
        ]

    @classmethod
    def of(cls, name: str, parts: list["TaggedDocument"]) -> "TaggedDocument":
        """Join parts to a document with a name."""
        sentences = tuple(words for part in parts for words in part.sentences)
        return cls(name, sentences, tuple(tags for part in parts for tags in part.tags))

    def first(self, count: int) -> "TaggedDocument":
        """Return a document of its first `count` sentences."""
        parts = (self.sentences, self.tags, self.offsets)
        return TaggedDocument(self.id, *(part and part[:count] for part in parts))
