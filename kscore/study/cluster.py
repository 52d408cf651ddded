"""An existing Dask cluster as an executor for training runs."""

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from contextlib import contextmanager

from kscore.rl.config import PROTOCOL_VERSION

PATIENCE = 10  # seconds to wait for a scheduler

PROTOCOL = "__import__('kscore.rl.config', fromlist=['PROTOCOL_VERSION']).PROTOCOL_VERSION"
"""Evaluated by every process of the cluster: a fixed text, so that one without this package can say so instead of
failing to read a function of it."""


@contextmanager
def executor(address: str) -> Iterator[Executor]:
    """Lend an executor that trains on the cluster at an address; a run whose worker dies is done again elsewhere."""
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise ValueError("a scheduler needs the cluster extra: pip install -e '.[cluster]'") from None
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:  # the last: a tls:// address without certificates
        raise ValueError(f"scheduler must be the address of a running Dask scheduler, got {address!r}: "
                         f"{error}") from None
    with client:
        check_members(_answers(client), address)
        try:
            with client.get_executor(pure=False) as pool:
                yield pool
        except (KilledWorker, CancelledError) as error:
            raise BrokenExecutor(str(error)) from error


def _answers(client: object) -> dict[str, object]:
    """Return the protocol version of the scheduler, which reads all that is sent, and of each worker; or its error."""
    try:
        scheduler = client.run_on_scheduler(eval, PROTOCOL)
    except Exception as error:  # whatever it says to that
        scheduler = error
    workers = client.run(eval, PROTOCOL, on_error="return")
    return {"the scheduler": scheduler} | {f"worker {name}": answer for name, answer in workers.items()}


def check_members(answers: dict[str, object], address: str) -> None:
    """Refuse a cluster without workers, or where one process lacks this package or has another protocol version."""
    if len(answers) < 2:
        raise ValueError(f"the scheduler at {address} has no workers")
    for member, answer in answers.items():
        if isinstance(answer, Exception):
            raise ValueError(f"{member} cannot import kscore: {answer}")
        if answer != PROTOCOL_VERSION:
            raise ValueError(f"{member} has protocol version {answer}, and this study has {PROTOCOL_VERSION}: "
                             "install the same version of kscore on both")
