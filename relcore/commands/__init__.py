"""The commands of `relscope`, one a module: `add_arguments(parser)` and `run(options)`.

Nothing but Python itself is imported before a command runs, so that every `--help` is there at once.
"""
