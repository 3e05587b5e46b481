"""Visual words: clips' features as words, by hierarchical k-means (VideoBERT, section 4.2).

All features are cut into `k` clusters by k-means, each of these again, and so on `depth` times; a
word is a cluster at the end. The paper's k of 12 and depth of 4 are up to 20,736 words. A cluster
that has fewer points than it is to have parts has fewer of them, so no word is empty.
"""

import warnings

import numpy as np


class VisualWords:
    """The words that some features are cut into.

    Args:
      features: float [N, D] to learn from.
      seed: of k-means.

    Attributes:
      centroids: float32 [words, D].
    """

    def __init__(self, features, k: int, depth: int, seed: int):
        self._k, self._seed, self.centroids = k, seed, []
        features = np.asarray(features, np.float32)
        self._tree = self._node(features, features.mean(axis=0), depth)
        self.centroids = np.stack(self.centroids)

    def __call__(self, features) -> np.ndarray:
        """Map float [N, D] -> int32 [N]: of each the nearest cluster, then the nearest inside
        it."""
        words = np.zeros(len(features), np.int32)
        nodes = [(self._tree, np.arange(len(features)))]
        features = np.asarray(features, np.float32)
        while nodes:
            node, rows = nodes.pop()
            if isinstance(node, int):
                words[rows] = node
                continue
            centres, children = node
            # Nearest by |c|^2 - 2 x c; the square of x is the same for all.
            nearest = ((centres**2).sum(axis=1) - 2 * features[rows] @ centres.T).argmin(axis=1)
            nodes += [(child, rows[nearest == i]) for i, child in enumerate(children)]
        return words

    def _node(self, points, centre, depth):
        """Return a word's number, or (centres [C, D], C nodes)."""
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        labels = np.zeros(len(points), int)
        if depth and len(points) > 1:
            model = KMeans(min(self._k, len(points)), n_init=4, random_state=self._seed)
            # Threads would add up in any order, to other words in other runs.
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")  # of fewer different points than clusters
                labels = model.fit(points).labels_
        found = np.unique(labels)
        if len(found) == 1:
            self.centroids.append(centre.astype(np.float32))
            return len(self.centroids) - 1
        centres = model.cluster_centers_[found]
        parts = [points[labels == label] for label in found]
        return centres, [self._node(*part, depth - 1) for part in zip(parts, centres, strict=True)]
