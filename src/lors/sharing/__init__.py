"""Sharing a set: its card, a plain folder of it, and the Hugging Face Hub."""
