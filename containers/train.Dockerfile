# Every command of the project, on CPUs with TensorFlow or NVIDIA GPUs with JAX. In the repository:
#
#     docker build -f containers/train.Dockerfile -t official-bert .
#     docker build -f containers/train.Dockerfile -t official-bert:gpu --build-arg DEVICE=gpu .
#     docker run --rm --user "$(id -u)" -v "$PWD:/work" official-bert finetune \
#         --config=text_classification:small --config.model=tiny-wikipedia --config.data_dir=FOLDER \
#         --workdir=runs/mine
#
# With the second image: docker run --gpus=all. What is downloaded stays in the mounted folder too.
ARG DEVICE=cpu

FROM python:3.12-slim AS cpu
ENV EXTRA=tensorflow KERAS_BACKEND=tensorflow

FROM python:3.12-slim AS gpu
ENV EXTRA=jax-cuda KERAS_BACKEND=jax

# hadolint ignore=DL3006
FROM ${DEVICE}
WORKDIR /opt/official-bert
COPY pyproject.toml setup.py requirements-base.txt README.md LICENSE ./
COPY official_bert official_bert
COPY data_prep data_prep
COPY experiments experiments
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".[$EXTRA]"
WORKDIR /work
ENV HOME=/work
ENTRYPOINT ["official-bert"]
CMD ["--help"]
