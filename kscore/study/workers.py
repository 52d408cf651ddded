"""Who trains: processes of this machine, or a Dask cluster; and how far they are."""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from multiprocessing.connection import Connection

from kscore import checks, progress
from kscore.rl.config import RunConfig
from kscore.study import cluster, records


def trained(missing: list[tuple[RunConfig, int]], executor: Executor | None, told: bool) -> Iterator[dict]:
    """Train runs and yield the record of each as it finishes; `told` says how far it is."""
    cluster.made_by()  # by the code as it is now, not as somebody may have edited it when the first run comes back
    with progress.of(len(missing), "run", "training", told) as done:
        with _lent(executor, missing) as pool:
            with _workers_without_main():
                ahead = _each_plays(missing, pool)
                train = partial(_train, ahead=ahead) if ahead else _train
                futures = [pool.submit(train, config, seed) for config, seed in missing]
            try:
                for future in as_completed(futures):
                    yield cluster.checked(future.result())
                    done()
            finally:
                for future in futures:
                    future.cancel()


def _each_plays(missing: list[tuple[RunConfig, int]], pool: Executor) -> int:
    """Return how many episodes of CartPole each process has before it; 0 if it is not known how many there are."""
    episodes = sum(config.max_episodes for config, _ in missing if config.env == "CartPole-v1")
    return episodes // pool.processes if hasattr(pool, "processes") else 0


def _lent(executor: Executor | None, missing: list[tuple[RunConfig, int]]) -> AbstractContextManager[Executor]:
    """Return the executor that was given, or else processes: new ones if code is named that may have been edited."""
    if executor is not None:
        return nullcontext(executor)
    configs = {id(config): config for config, _ in missing}.values()
    return processes(os.cpu_count() if any(map(records.names_from_outside, configs)) else None)


WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # more threads would only get in each other's way
    "MALLOC_TRIM_THRESHOLD_": "131072",  # glibc's own start value, kept: left to adapt, a worker's heap only ever grows
    "PYTHONSAFEPATH": "1",  # no code from the folder in which one happens to be, such as a signal.py that lies there
}

MOST = 1000  # processes at once


@contextmanager
def processes(workers: int | None = None, scheduler: str | None = None) -> Iterator[Executor]:
    """Lend an executor of spawned processes, one a core by default, that use one thread each.

    Those of the default stay for as long as this process does, for all studies that follow each other in it, with the
    code that they began with; a number of `workers` gets new ones. Nothing is spawned before there is work. Where the
    address of a Dask scheduler is given, or stands in DASK_SCHEDULER_ADDRESS, its cluster does the work instead.
    """
    if workers is not None:
        checks.whole("workers", workers, high=MOST)
    if scheduler is None:  # an empty address is a mistake, as of a script whose variable is not set; not this machine
        scheduler = os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    if scheduler is not None:
        lent = cluster.executor(scheduler)
    elif workers is None and not _staying.lock.locked():
        lent = _staying.lend()
    else:
        lent = _own_processes(workers or os.cpu_count())
    with lent as pool:
        yield pool


class _Staying:
    """Processes that stay when a study is over, so that the next one need not begin by starting its own."""

    def __init__(self) -> None:
        self.lock, self.held, self.pool = threading.Lock(), ExitStack(), None

    @contextmanager
    def lend(self) -> Iterator[Executor]:
        """Lend them to one study at a time; what ends it early, such as an interruption, ends them as well."""
        with self.lock:
            if self.pool is None:
                self.pool = self.held.enter_context(_own_processes(os.cpu_count()))
            try:
                yield self.pool
            except BaseException as error:
                self.pool = None
                self.held.__exit__(type(error), error, error.__traceback__)
                raise


_staying = _Staying()
atexit.register(lambda: _staying.held.close())


@contextmanager
def _own_processes(workers: int) -> Iterator[Executor]:
    """Lend spawned processes; after an interruption, or if this process is killed, none of them stays behind."""
    spawn = multiprocessing.get_context("spawn")
    end, line = spawn.Pipe(duplex=False)
    with end, line:
        pool = _Processes(workers, spawn, _hold_the_line, (end,))
        try:
            yield pool
        except BaseException:
            line.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


class _Processes(ProcessPoolExecutor):
    """Processes that are started, when the first work is there, in an environment of their own."""

    def __init__(self, workers: int, *how: object) -> None:
        super().__init__(workers, *how)
        self.processes = workers

    def submit(self, *work: object, **options: object) -> Future:
        """Send something to be done by any of them."""
        with _worker_environment():
            return super().submit(*work, **options)


@contextmanager
def _worker_environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in WORKER_ENVIRONMENT}
    os.environ.update(WORKER_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _workers_without_main() -> Iterator[None]:
    """Keep spawned workers from running the calling script again: a chapter run as a plain script has no main guard."""
    main = sys.modules["__main__"].__dict__
    hidden = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


# In a worker

_unwanted = threading.Event()  # set when the line is closed: what is being trained is not wanted any more


def _hold_the_line(end: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process at the other end
    threading.Thread(target=_listen, args=(end,), daemon=True).start()


def _listen(end: Connection) -> None:
    end.poll(None)
    _unwanted.set()
    multiprocessing.parent_process().join()
    os._exit(1)  # nobody is left to end it


def _train(config: RunConfig, seed: int, ahead: int = 0) -> dict:
    """Return the record of a run, and beside it what made it; `ahead` are the episodes that are still to come."""
    made_by = cluster.made_by()
    from kscore.rl import compiled  # here, because whoever hands out the work does not need torch
    from kscore.rl.training import train

    compiled.expect(ahead)

    start, cpu_start = time.perf_counter(), time.thread_time()
    try:
        record = train(config, seed, progress=_go_on_if_wanted)
    except Exception as error:  # whatever it is, an environment's fault for one, the other runs go on
        took = time.perf_counter() - start, time.thread_time() - cpu_start
        record = records.failed(config, seed, f"{type(error).__name__}: {error}", *took)
    return record | {"made_by": made_by}


def _go_on_if_wanted(*_: object) -> None:
    if _unwanted.is_set():
        raise KeyboardInterrupt
