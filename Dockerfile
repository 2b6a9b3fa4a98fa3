# The one image of Onboard: `worker` by default, and every other command of the program.
#
#   docker build --tag onboard .
#       GPUs and CPUs. CUDA comes inside torch's wheels; the host needs the driver and the NVIDIA container toolkit.
#   docker build --tag onboard --build-arg TORCH_INDEX=URL .
#       CPUs only, some gigabytes smaller. URL: PyTorch's package index for CPUs (docs/deployment.md#one-machine).
#
# By digest, so that nothing else can be slipped in (docs/deployment.md#by-digest):
#   --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:…  --build-arg TORCH_SHA256=…

ARG PYTHON_IMAGE="python:3.11-slim-bookworm"

FROM ${PYTHON_IMAGE} AS build
ARG TORCH_INDEX=""
ARG TORCH_SHA256=""
WORKDIR /source
RUN python -m venv --without-pip /opt/onboard
COPY constraints.txt requirements.lock ./
# torch alone and without its dependencies: nothing else may come from an index that was given for torch
RUN --mount=type=cache,target=/root/.cache/pip \
    sed -n "s/^torch==.*/&${TORCH_SHA256:+ --hash=sha256:$TORCH_SHA256}/p" constraints.txt > torch.txt \
 && pip --python /opt/onboard install --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} \
    ${TORCH_SHA256:+--require-hashes} --requirement torch.txt
# Everything else by its digest. Then NVIDIA's libraries, which a torch for GPUs names; one for CPUs lacks nothing by then.
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/onboard install --no-deps --require-hashes --requirement requirements.lock \
 && pip --python /opt/onboard install --constraint constraints.txt torch
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY migrations migrations
COPY workers workers
COPY cli cli
COPY onboard onboard
# built by the setuptools of requirements.lock, not by one that is fetched now; then nothing may be missing
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/onboard install --no-deps --no-build-isolation --constraint constraints.txt \
    ".[gpu,otel,s3,serve]" \
 && pip --python /opt/onboard check

FROM ${PYTHON_IMAGE}
ARG VERSION="unknown"
LABEL org.opencontainers.image.title="onboard" \
      org.opencontainers.image.description="Learn one small text task after another on one frozen T5" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
# tini: as process 1 a program that is still starting would not hear SIGTERM, and would have to bury orphans
RUN apt-get update \
 && apt-get install --yes --no-install-recommends "tini=0.19.*" \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 onboard \
 && useradd --uid 10001 --gid onboard --no-log-init --no-create-home --home-dir /var/lib/onboard onboard \
 && install --directory --owner onboard --group onboard --mode 0700 /var/lib/onboard
COPY --from=build /opt/onboard /opt/onboard
# Written are ONBOARD_HOME (a volume) and /tmp (a tmpfs), so that the root file system may be read-only.
# The hub is not asked: the base `mini` is inside. HF_HUB_OFFLINE=0 for data sets and bases by their name there.
ENV PATH="/opt/onboard/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ONBOARD_HOME=/var/lib/onboard \
    HF_HOME=/var/lib/onboard/huggingface \
    HF_HUB_OFFLINE=1 \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /var/lib/onboard
USER 10001:10001
STOPSIGNAL SIGTERM
# A worker touches the file while its upkeep goes round, also while the database is away, which no restart would mend.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["sh", "-c", "test -n \"$(find /tmp/alive -mmin -1)\""]
ENTRYPOINT ["tini", "--", "onboard"]
CMD ["worker", "--alive-file", "/tmp/alive"]
