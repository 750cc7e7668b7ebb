"""What a chart shows, as plain data: computation makes these, `relcore.figures` draws them."""
