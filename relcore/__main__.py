"""``python -m relcore``, and the command ``relscope``; see `relcore.cli`."""

from relcore.base import stopping

stopping.listen(stopping.leave)  # before the imports, which take the first second


def run() -> None:
    """The command of this process's arguments."""
    try:
        from relcore.cli import main

        code = main()
    except KeyboardInterrupt:  # it came when the work had just ended
        code = stopping.say()
    except SystemExit as end:  # after --help
        code = end.code or 0
    stopping.end(code)


if __name__ == "__main__":
    run()
