# The app in a container, also as a Space of Hugging Face, whose README begins with the header in docs/running.md.
# For an image that can be built again to the byte, name the base by its digest: --build-arg BASE=python:3.11-slim-bookworm@sha256:…
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make=4.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 user \
    && install --directory --owner=user /relscope /store
USER 1000
WORKDIR /relscope
# The packages are a layer of their own, which a change of the code leaves as it is.
COPY --chown=user Makefile requirements.txt requirements.lock torch.lock torch-cpu.lock ./
RUN make .venv/packages
COPY --chown=user . .
# Copied files have the time of the commit or of the checkout, which may be later than that of the packages.
RUN touch .venv/packages && make .venv/installed
# Results and sessions outlive the container: docker run --volume relscope:/store …
ENV RELSCOPE_STORE=/store
VOLUME /store
# Others reach the port, so the app keeps them apart, and its token comes from RELSCOPE_TOKEN or is printed.
ENV RELSCOPE_SHARE=1
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD [".venv/bin/python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:7860/_stcore/health')"]
CMD [".venv/bin/python", "-m", "relcore", "app", "--port", "7860", "--no-browser", "--share"]
