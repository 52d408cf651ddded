"""Training on a Dask cluster: a real scheduler and real workers, in processes of their own on the loopback address."""

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import BrokenExecutor

import psutil
import pytest
from conftest import eventually
from distributed import Client

from kscore import ROOT, cluster, study
from kscore.__main__ import main
from kscore.training import PROTOCOL_VERSION, RunConfig

pytestmark = pytest.mark.usefixtures("quick_start")


def tiny(**changes):
    fields = {"env": "CartPole-v1", "algorithm": "reinforce", "threshold": None, "hidden": (8,), "max_episodes": 3}
    return RunConfig(**{**fields, **changes})


ARMS = {"zscore": tiny(), "none": tiny(normalizer={"name": "none"})}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, folder, **environment):
        self.folder, self.processes = folder, []
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.start("dask_scheduler", "--port", self.address.rsplit(":", 1)[1], **environment)

    def start(self, program, *arguments, **environment):
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--host", "127.0.0.1", "--no-dashboard"]
        command += arguments
        self.processes.append(subprocess.Popen(command, cwd=self.folder, env=os.environ | environment,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.processes[-1]

    def worker(self, **environment):
        """Start a worker, and return when the scheduler knows it."""
        process = self.start("dask_worker", self.address, "--nthreads", "1", "--no-nanny", **environment)
        with Client(self.address, timeout=60) as client:
            client.wait_for_workers(len(self.processes) - 1, timeout=60)
        return process

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def clusters(tmp_path):
    started = []

    def start(**environment):
        started.append(Cluster(tmp_path, **environment))
        return started[-1]

    yield start
    for made in started:
        made.end()


@pytest.fixture
def made(clusters):
    return clusters()


def test_a_study_on_the_cluster_is_the_study_on_this_machine(made, tmp_path, monkeypatch):
    made.worker()
    with study.processes(scheduler=made.address) as executor:
        there = study.run(ARMS, range(2), tmp_path / "there.jsonl", executor)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", made.address)  # the other way to name it
    before = {child.pid for child in psutil.Process().children()}
    again = study.run(ARMS, range(2), tmp_path / "again.jsonl")
    assert {child.pid for child in psutil.Process().children()} == before, "nothing was spawned here"
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS")
    here = study.run(ARMS, range(2), tmp_path / "here.jsonl", workers=1)
    for one, other, third in zip(there.itertuples(), again.itertuples(), here.itertuples(), strict=True):
        assert list(one.eval_returns) == list(other.eval_returns) == list(third.eval_returns)


def test_a_run_whose_worker_dies_is_done_again_elsewhere(made, tmp_path):
    first = made.worker()
    with Client(made.address) as client:
        address, = client.scheduler_info()["workers"]
        made.worker()

        def accident():
            assert eventually(lambda: client.processing()[address])
            first.kill()

        killer = threading.Thread(target=accident)
        with study.processes(scheduler=made.address) as executor:
            killer.start()
            frame = study.run({"one": tiny(max_episodes=40)}, range(4), tmp_path / "runs.jsonl", executor)
            killer.join()
    assert first.wait() == -signal.SIGKILL and len(frame) == 4
    assert sorted(record["seed"] for record in study.read(tmp_path / "runs.jsonl").records) == list(range(4))


def test_a_run_that_the_cluster_gives_up_is_a_broken_executor(clusters):
    made = clusters(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    made.worker()
    with pytest.raises(BrokenExecutor, match="abort"), study.processes(scheduler=made.address) as executor:
        executor.submit(os.abort).result(timeout=60)


ABSENT = "raise ModuleNotFoundError(\"No module named 'kscore'\")"  # what Python itself would say
OTHER_VERSION = "import kscore.training\nkscore.training.PROTOCOL_VERSION += 1\n"


@pytest.mark.parametrize(("member", "file", "text", "message"), [
    ("scheduler", "kscore/__init__.py", ABSENT, "the scheduler cannot import kscore: No module named 'kscore'"),
    ("worker", "kscore/__init__.py", ABSENT, "cannot import kscore: No module named 'kscore'"),
    ("worker", "sitecustomize.py", OTHER_VERSION, f"has protocol version {PROTOCOL_VERSION + 1}, and this study has"),
])
def test_a_process_that_cannot_take_part_is_refused(clusters, tmp_path, capsys, member, file, text, message):
    (tmp_path / "theirs" / file).parent.mkdir(parents=True)
    (tmp_path / "theirs" / file).write_text(text)
    theirs = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "theirs"), str(ROOT)])}
    made = clusters(**theirs if member == "scheduler" else {})
    made.worker(**theirs if member == "worker" else {})
    assert main(["study", "cartpole_ppo", "--store", str(tmp_path / "runs"), "--scheduler", made.address]) == 2
    assert message in capsys.readouterr().err
    assert not list((tmp_path / "runs").glob("*")), "nothing was begun"


def test_a_scheduler_without_workers_is_refused():
    with pytest.raises(ValueError, match="the scheduler at tcp://a has no workers"):
        cluster.check_members({"the scheduler": PROTOCOL_VERSION}, "tcp://a")


@pytest.mark.parametrize("command", [["study", "cartpole_ppo"], ["run", "05"]])
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{free}", "tls://127.0.0.1:{free}", "nowhere:", "file:///tmp/x"])
def test_an_address_where_nobody_listens_gets_a_sentence(monkeypatch, capsys, tmp_path, command, address):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "")
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    address = address.format(free=free_port())
    assert main([*command, "--scheduler", address]) == 2
    assert f"scheduler must be the address of a running Dask scheduler, got '{address}'" in capsys.readouterr().err


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"a scheduler needs the cluster extra: pip install"), cluster.executor("tcp://a"):
        pass


def test_nothing_listens_on_a_network_port_without_a_cluster(tmp_path):
    script = f"""
import psutil
from kscore import study
from kscore.training import RunConfig
config = RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=None, hidden=(8,), max_episodes=2)
with study.processes(1) as executor:
    study.run([config], [0], {str(tmp_path / "runs.jsonl")!r}, executor, progress=False)
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    print([c for p in family for c in p.net_connections() if c.status == "LISTEN"])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"
