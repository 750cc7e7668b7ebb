"""Choose anchors and evaluate the choice."""
