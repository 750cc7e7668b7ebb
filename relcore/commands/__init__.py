"""The commands of `relscope`, one module each: `add_arguments(parser)` and `run(options)`.

A command imports everything but Python itself when it runs, so that every `--help` appears at once.
"""
