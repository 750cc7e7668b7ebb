"""Autoencoders, stitched: the encoder of one training run with the decoder of another."""
