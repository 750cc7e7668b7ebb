"""The entry point of ``python -m relcore`` and of the command ``relscope`` (see `relcore.cli`)."""

from relcore.base import stopping

stopping.listen(stopping._stop_on_signal)  # before the imports, which take a second


def run() -> None:
    """Run the command that this process's arguments name."""
    try:
        from relcore.cli import main

        code = main()
    except KeyboardInterrupt:  # Ctrl-C came just as the work ended
        code = stopping.print_stopped()
    except SystemExit as end:  # raised after --help
        code = end.code or 0
    stopping.end(code)


if __name__ == "__main__":
    run()
