"""One fine-tuning of this project: its FinetuneConfig as JSON, then the work folder."""

import json
import os
import sys
import tempfile
import time


def main():
    import tensorflow as tf

    from experiments import finetune
    from experiments.training import finetune_run  # noqa: F401 (imported before the clock starts)
    from experiments.training.config import FinetuneConfig

    tf.constant(0)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["OFFICIAL_BERT_CACHE"] = cache  # featurising belongs to the time
        start = time.perf_counter()
        results = finetune.run(FinetuneConfig(**json.loads(sys.argv[1])), sys.argv[2])
        # Not the run's own seconds: a continued run would count those of the first process.
        seconds = time.perf_counter() - start
    print(json.dumps({"dev": results["dev"], "seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main()
