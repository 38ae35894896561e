# CPU:   docker build --tag lors .
# CUDA:  docker build --tag lors:cuda --build-arg BASE=pytorch/pytorch:2.13.0-cuda12.6-cudnn9-runtime .
# Run:   docker run --rm --volume "$PWD:/work" --user "$(id -u)" lors distill tiny
#        (with --gpus all for CUDA; --volume lors:/cache keeps experts and downloads)
ARG BASE=python:3.12-slim
FROM ${BASE}

# Which extras to install; "dev" is not needed to run lors.
ARG EXTRAS=all
# Where else pip looks for packages, such as PyTorch's CPU wheels, which are much smaller.
ARG PIP_EXTRA_INDEX_URL=

# A torch that the base brings is kept. The setting allows pip to install beside the system's packages.
RUN --mount=type=bind,target=/source,rw \
    PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir "/source[${EXTRAS}]" \
    && useradd --system --uid 10001 --create-home lors \
    && install --directory --mode 1777 /cache /work

# Writable by any user, so that --user can be yours and the files below /work belong to you.
ENV HOME=/cache \
    HF_HOME=/cache/huggingface \
    LORS_HOME=/cache/lors

USER 10001
WORKDIR /work
ENTRYPOINT ["lors"]
CMD ["--help"]
