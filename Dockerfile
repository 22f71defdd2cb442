# The command line and the studio. `make container` builds and checks this; docs/how-to/container.md says how to use it.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY tools/readme_hook.py tools/readme_hook.py
COPY src src
ARG EXTRAS=query,report,studio,formats,databases,learn
RUN python3 -m venv /opt/reconpriv \
 && /opt/reconpriv/bin/python -m pip install --no-cache-dir ".[${EXTRAS}]"

FROM ${BASE}
COPY --from=build /opt/reconpriv /opt/reconpriv
# Only /data and /tmp are written to, so the root file system can be read-only.
ENV PATH=/opt/reconpriv/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /data
USER 10001:10001
ENTRYPOINT ["reconpriv"]
CMD ["--help"]
