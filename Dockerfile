# One image for all roles: `api` (the default), `updater`, `keeper`, `init` …
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /app
WORKDIR /src
# The dependencies alone first: they change seldom, the code often.
COPY requirements/build.txt requirements/run.txt requirements/
RUN /app/bin/pip install --require-hashes -r requirements/build.txt -r requirements/run.txt
COPY pyproject.toml cli.py ./
COPY schemas schemas
COPY stores stores
COPY updater updater
COPY api api
COPY rebuild rebuild
COPY embedded embedded
COPY commands commands
COPY client client
COPY samples samples
RUN /app/bin/pip install --no-deps --no-build-isolation . && /app/bin/pip uninstall --yes setuptools

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home standings
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH PYTHONUNBUFFERED=1 STANDINGS_HOST=0.0.0.0
USER standings
WORKDIR /tmp
EXPOSE 8080
# Of the api; the other roles serve no port, so docker-compose.yml turns it off for them.
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=5 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/livez', timeout=2)"]
ENTRYPOINT ["standings"]
CMD ["api"]
