"""Sets on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import huggingface_hub as hub

from lors.runs.opened import Run
from lors.share.export import export
from lors.system.errors import InputError, LorsError
from lors.system.hub import hub_answers

__all__ = ["push"]

STALE = ["images/*", "metadata.jsonl", "pairs.jsonl", "features.safetensors", "similarity.*"]
"""What an earlier push may have left: an image without its line would break the dataset."""

REASONS = {
    401: "the token is not accepted: log in again with 'hf auth login', or set HF_TOKEN",
    403: "your token may not write there: use a token with write access, or another repository",
    404: "there is no such user or organisation, or your token does not see it",
}


def push(run: Run, repo: str, private: bool = False) -> str:
    """Export a set and upload it as a dataset of the Hub; what is there of an earlier one goes.

    Args:
        run: the run or set.
        repo: ``owner/name``; made if it is not there.
        private: make it private, if it is made.

    Returns:
        Its address.

    Raises:
        InputError: there is no token, or the name or the token is refused.
        LorsError: the Hub cannot be reached, or fails.
    """
    if hub.get_token() is None:
        raise InputError("nobody is logged in to the Hub: run 'hf auth login', or set HF_TOKEN")
    if not hub_answers():
        raise LorsError(
            f"cannot push to {repo!r}: the Hugging Face Hub does not answer. The same command "
            "tries again; 'lors export' writes the same files to a folder"
        )
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "export"
        export(run, folder)
        try:
            address = hub.HfApi().create_repo(
                repo, repo_type="dataset", private=private or None, exist_ok=True
            )
            hub.HfApi().upload_folder(
                repo_id=repo,
                repo_type="dataset",
                folder_path=folder,
                commit_message="Distilled set by lors",
                delete_patterns=STALE,
            )
        except Exception as error:  # the client raises its own errors and those of its HTTP library
            raise _sentence(repo, error) from None
    return str(address)


def _sentence(repo: str, error: Exception) -> LorsError:
    """What went wrong and what to do about it."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in REASONS:
        return InputError(f"cannot push to {repo!r}: {REASONS[status]}")
    reason = " ".join(str(error).split())
    if isinstance(error, ValueError):  # a name that cannot be one
        return InputError(f"cannot push to {repo!r}: {reason}")
    return LorsError(
        f"cannot push to {repo!r}: {reason or type(error).__name__}. Is the network there? The "
        "same command tries again; 'lors export' writes the same files to a folder"
    )
