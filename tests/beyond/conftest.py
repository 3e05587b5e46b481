"""The fixtures of the core's tests, for guests'."""

from tests.experiments.conftest import data as data
from tests.official_bert.conftest import config as config
from tests.official_bert.conftest import inputs as inputs
from tests.official_bert.conftest import pretraining_batch as pretraining_batch
from tests.official_bert.conftest import tokenizer as tokenizer
