# The command line and the viewer, without root rights. Folders of yours appear under /data:
#   docker build -t ethobench .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" ethobench train my_study/ --out models/first
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" --network host ethobench view my_study/ --no-browser
# The viewer answers on the loopback address only, so it needs --network host (Linux; Docker Desktop 4.34 or newer).
FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE constraints.txt /src/
COPY src /src/src
RUN python -m venv /opt/ethobench \
    && /opt/ethobench/bin/pip install --no-cache-dir --constraint /src/constraints.txt "/src[boost,nn,pose,nwb,video,stats,app]"

FROM python:3.12-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 ethobench \
    && mkdir -m 1777 /cache
COPY --from=build /opt/ethobench /opt/ethobench
ENV PATH="/opt/ethobench/bin:$PATH" ETHOBENCH_CACHE=/cache MPLCONFIGDIR=/cache/matplotlib
USER 1000
WORKDIR /data
ENTRYPOINT ["ethobench"]
CMD ["--help"]
