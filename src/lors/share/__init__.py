"""Sharing: exports, the Hub, the retriever."""
