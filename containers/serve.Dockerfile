# TensorFlow Serving with an exported model inside. The folder that experiments.export wrote, in which
# the version 1/ lies, is the context:
#
#     docker build -f containers/serve.Dockerfile -t mine serving/mine
#     docker run --rm -p 8500:8500 -p 8501:8501 mine
#     curl -d '{"instances": ["a moving film"]}' http://localhost:8501/v1/models/model:predict
#
# SERVING: an image of at least the TensorFlow that exported (assets.extra/serving.json).
ARG SERVING=latest
FROM tensorflow/serving:${SERVING}
COPY . /models/model
