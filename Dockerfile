# The command line and the viewer, without root rights:
#   docker build -t ethobench .
#   docker run --rm -v "$PWD:/data" ethobench train my_study/ --out models/first
#   docker run --rm --network host -v "$PWD:/data" ethobench view my_study/ --no-browser
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir --constraint /src/constraints.txt "/src[boost,nn,pose,nwb,video,app]" \
    && rm -rf /src \
    && useradd --create-home ethobench
USER ethobench
WORKDIR /data
ENTRYPOINT ["ethobench"]
CMD ["--help"]
