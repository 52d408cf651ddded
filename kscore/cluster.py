"""An existing Dask cluster as an executor for training runs."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from kscore.training import PROTOCOL_VERSION

PATIENCE = 10  # seconds to wait for a scheduler

WORKER_PROTOCOL = "__import__('kscore.training', fromlist=['PROTOCOL_VERSION']).PROTOCOL_VERSION"
"""Evaluated on each worker: a fixed text, so that a worker without this package can say so instead of failing to read
a function of it."""


@contextmanager
def executor(address: str) -> Iterator[Executor]:
    """Lend an executor that trains on the cluster at an address; a run whose worker dies is done again elsewhere."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("a scheduler needs the cluster extra: pip install -e '.[cluster]'") from None
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(f"scheduler must be the address of a running Dask scheduler, got {address!r}: "
                         f"{error}") from None
    with client:
        check_workers(client.run(eval, WORKER_PROTOCOL, on_error="return"), address)
        with client.get_executor(pure=False) as pool:
            yield pool


def check_workers(answers: dict[str, object], address: str) -> None:
    """Refuse a cluster without workers, or with one that lacks this package or has another protocol version."""
    if not answers:
        raise ValueError(f"the scheduler at {address} has no workers")
    for worker, answer in answers.items():
        if isinstance(answer, Exception):
            raise ValueError(f"worker {worker} cannot import kscore: {answer}")
        if answer != PROTOCOL_VERSION:
            raise ValueError(f"worker {worker} has protocol version {answer}, and this study has {PROTOCOL_VERSION}: "
                             "install the same version of kscore on both")
