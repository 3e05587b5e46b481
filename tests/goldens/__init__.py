"""Results of earlier versions: numbers of steps, and files in every format.

`python -m tests.goldens steps formats` writes them anew; they change only when a change of bits is
meant, and a changelog says so. Processors round sums differently, so numbers are compared to 1e-5.
"""

import sys
from pathlib import Path

for folder in ("", "experiments", "official_bert"):
    sys.path.append(str(Path(__file__).parents[1] / folder))
