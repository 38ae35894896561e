"""The ``lors`` command, ready for Ctrl-C before it imports anything that takes time."""

import signal

__all__ = ["main"]


def main() -> None:
    """Run the command line.

    As long as nothing is under way, Ctrl-C simply ends the process, as SIGTERM and SIGHUP do: an
    exception in the middle of an import would be a traceback, or be lost. ``lors.cli.display``
    turns signals into exceptions once there is something to save.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lors.cli import main as run

    run()


if __name__ == "__main__":
    main()
