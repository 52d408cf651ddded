"""An existing Dask cluster as an executor for training runs, and whose runs are taken.

A worker may join at any time. So every run says what shaped it (`made_by`), and one that was shaped by anything else
than what is here is refused (`checked`), wherever it comes from.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from kscore import progress, provenance
from kscore.rl.config import PROTOCOL_VERSION

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 12.0  # seconds in which a scheduler and all of its workers have to answer, from the first word to the last
PARTING = 2.0  # seconds to take leave of them
OFTEN = 1.0  # seconds between two looks at whether there are workers


# Whose runs are taken

ROOMS = ("checks", "filters", "normalizers", "rl")  # the code that shapes a run
PACKAGES = ("kscore", "numpy", "torch", "gymnasium", "box2d")  # and the packages that do
NOT_KEPT = "That run is not kept, those before it are: begin again with the same on all sides, and the study goes on"


@cache
def made_by() -> dict[str, object]:
    """Return what shapes the runs of this process: the version of the protocol, the training code, the packages."""
    return {
        "protocol version": PROTOCOL_VERSION,
        "training code": provenance.code(*ROOMS),
        **provenance.versions(PACKAGES),
    }


def checked(run: object) -> dict:
    """Return the record that a worker returned, without what made it; refuse one that this process would not make."""
    theirs = run.get("made_by") if isinstance(run, dict) else None
    if not isinstance(theirs, dict):
        raise ValueError(
            f"a worker returned a run that does not say what made it, {run!r:.80}: it has another version "
            f"of kscore. {NOT_KEPT}"
        )
    if differing := _differing(theirs, made_by()):
        raise ValueError(f"a worker trained a run with {differing}. {NOT_KEPT}")
    return {name: value for name, value in run.items() if name != "made_by"}


def _differing(theirs: dict, names: Iterable[str]) -> str:
    ours = made_by()
    return ", ".join(
        f"{name} {theirs.get(name, 'unknown')} (here {ours[name]})" for name in names if theirs.get(name) != ours[name]
    )


# The cluster


@contextmanager
def executor(address: str) -> Iterator[Executor]:
    """Lend an executor that trains on the cluster at an address; a run whose worker dies is done again elsewhere."""
    try:
        import distributed  # noqa: F401 (here, because only who has a cluster needs it)
    except ImportError:
        raise ValueError(
            "a scheduler needs the extra 'cluster': pip install -c constraints.txt -e '.[cluster]'"
        ) from None
    pool = _Cluster()
    thread = threading.Thread(target=lambda: asyncio.run(pool.serve(address)), daemon=True)
    thread.start()  # in which all waiting for the cluster is done: none of it keeps this process from ending
    try:
        check_members(_answers_to(pool, address), address)
        yield pool
    finally:
        pool.over.set_result(None)
        thread.join(PARTING)


def _answers_to(pool: "_Cluster", address: str) -> dict[str, object]:
    try:
        return pool.joined.result(PATIENCE)
    except Exception as error:  # of any kind: anything may listen there
        raise ValueError(
            "scheduler must be the address of a running Dask scheduler, got "
            f"{address!r}: {str(error) or f'no answer within {PATIENCE:g} s'}"
        ) from None


class _Cluster(Executor):
    """Sends work to a cluster, and takes back what nobody waits for any more."""

    def __init__(self) -> None:
        self.joined, self.over = Future(), Future()
        self.loop, self.client, self.waiting = None, None, 0

    def submit(self, function: Callable, /, *arguments: object) -> Future:
        """Send something to be done by any worker."""
        return asyncio.run_coroutine_threadsafe(self._done(function, arguments), self.loop)

    async def _done(self, function: Callable, arguments: tuple) -> object:
        from distributed import KilledWorker

        asked = self.client.submit(function, *arguments, pure=False)
        self.waiting += 1
        try:
            return await asked
        except KilledWorker as error:  # too many workers died of it
            raise BrokenExecutor(f"a training process died on the cluster: {error}") from None
        except CancelledError:
            raise BrokenExecutor("the scheduler of the cluster is gone") from None
        except Exception as error:  # not of the training: that would be told in its record
            raise ValueError(
                f"a worker could not do a run, with {type(error).__name__}: {error}; it lacks kscore, or "
                f"has another version of it. {NOT_KEPT}"
            ) from None
        finally:
            self.waiting -= 1
            asked.release()

    async def serve(self, address: str) -> None:
        """Join the cluster at an address, and stay until it is over."""
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda *_: None)  # of what Dask has begun and nobody waits for any more
        staying = asyncio.create_task(self._stay(address))
        await asyncio.wrap_future(self.over)
        staying.cancel()
        await asyncio.wait([staying])
        if self.client:
            await self.client.close()

    async def _stay(self, address: str) -> None:
        from distributed import Client
        from distributed.comm import get_address_host_port

        try:
            # Here, because Dask would leave it to a thread that a process waits for when it ends.
            socket.getaddrinfo(*get_address_host_port(address))
            self.client = Client(address, timeout=PATIENCE, asynchronous=True, set_as_default=False)
            await self.client
            self.joined.set_result(await _answers(self.client))
            await self._watch()
        except Exception as error:
            if not self.joined.done():
                self.joined.set_exception(error)

    async def _watch(self) -> None:
        """Say so whenever the last worker has gone while something is waited for."""
        deserted = False
        while True:
            await asyncio.sleep(OFTEN)
            before = deserted
            with suppress(OSError):  # of one question; a scheduler that is gone ends what is waited for
                deserted = bool(self.waiting) and not await self.client.nthreads()
            if deserted and not before:
                progress.say(
                    "the cluster has no workers left: waiting for one to come back; Ctrl-C ends it, and what "
                    "is finished is kept"
                )


# Who takes part in it

ASKED = "__import__('kscore.study.cluster', fromlist=['made_by']).made_by()"
"""Evaluated by every process of the cluster: a fixed text, so that one without this package can say so instead of
failing to read a function of it."""
SCHEDULER = "the scheduler"


async def _answers(client: "Client") -> dict[str, object]:
    """Return what the scheduler, which reads all that is sent, and each worker say of themselves; or their errors."""
    try:
        scheduler = await client.run_on_scheduler(eval, ASKED)
    except Exception as error:  # whatever it says to that
        scheduler = error
    workers = await client.run(eval, ASKED, on_error="return")
    return {SCHEDULER: scheduler} | {f"worker {name}": answer for name, answer in workers.items()}


def check_members(answers: dict[str, object], address: str) -> None:
    """Refuse a cluster without workers, or where one process lacks this package or would make other runs."""
    if len(answers) < 2:
        raise ValueError(f"the scheduler at {address} has no workers")
    for member, answer in answers.items():
        if isinstance(answer, ImportError):
            raise ValueError(f"{member} cannot import kscore: {answer}")
        if not isinstance(answer, dict):
            raise ValueError(f"{member} has another version of kscore, or is gone: {answer}")
        matters = ["protocol version"] if member == SCHEDULER else made_by()  # a scheduler makes no runs
        if differing := _differing(answer, matters):
            raise ValueError(f"{member} has {differing}: install the same on both")
