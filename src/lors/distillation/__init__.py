"""Distillation: the outer loop, its state, its health."""
