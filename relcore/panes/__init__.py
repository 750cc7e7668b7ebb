"""The linked panes: what draws, links and selects in a browser, wherever that is; see `source` for its homes."""
