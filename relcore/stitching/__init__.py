"""Stitching: the encoder of one model with the head or the decoder of another, without training."""
