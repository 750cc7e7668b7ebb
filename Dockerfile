# The app in a container, also as a Space of Hugging Face, whose README begins with the header in docs/running.md.
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make=4.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 user \
    && install --directory --owner=user /relscope
USER 1000
WORKDIR /relscope
COPY --chown=user . .
RUN make .venv/installed
# Others reach the port, so the app keeps them apart, and its token comes from RELSCOPE_TOKEN or is printed.
ENV RELSCOPE_SHARE=1
EXPOSE 7860
CMD [".venv/bin/python", "-m", "relcore", "app", "--port", "7860", "--no-browser", "--share"]
