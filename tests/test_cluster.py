"""Training on a Dask cluster: a real scheduler and real workers, in processes of their own on the loopback address."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
import pytest
from conftest import PATIENCE, eventually
from distributed import Client
from small_runs import ARMS, InProcess, tiny, without_seconds
from test_rooms import used_by

import kscore
from kscore import provenance, study
from kscore.__main__ import main
from kscore.project import ROOT
from kscore.rl.config import PROTOCOL_VERSION
from kscore.study import cluster, workers

pytestmark = pytest.mark.slow


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, folder, **environment):
        self.folder, self.processes, told = folder, [], folder / "scheduler.json"
        self.start("dask_scheduler", "--port", "0", "--scheduler-file", str(told), **environment)

        def address():
            with suppress(OSError, ValueError):  # not written yet, or not all of it
                return json.loads(told.read_text())["address"]

        self.address = eventually(address)
        self.client = Client(self.address, timeout=PATIENCE, set_as_default=False)

    def start(self, program, *arguments, **environment):
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--host", "127.0.0.1", "--no-dashboard"]
        self.processes.append(
            subprocess.Popen(
                [*command, *arguments],
                cwd=self.folder,
                env=os.environ | environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return self.processes[-1]

    def worker(self, **environment):
        """Start a worker, and return when the scheduler knows it."""
        name = uuid.uuid4().hex
        process = self.start(
            "dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--name", name, **environment
        )
        process.address = eventually(lambda: self.addresses().get(name))
        return process

    @contextmanager
    def guest(self, **environment):
        """Lend a worker that is gone, and forgotten, afterwards."""
        process = self.worker(**environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert eventually(lambda: process.address not in self.addresses().values())

    def addresses(self):
        return {worker["name"]: address for address, worker in self.client.scheduler_info(-1)["workers"].items()}

    def end(self):
        self.client.close()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def clusters(tmp_path):
    started = []

    def start(**environment):
        folder = tmp_path / f"cluster{len(started)}"
        folder.mkdir()
        started.append(Cluster(folder, **environment))
        return started[-1]

    yield start
    for made in started:
        made.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A cluster with one worker, which every test leaves as it was."""
    made = Cluster(tmp_path_factory.mktemp("shared"))
    made.host = made.worker()
    yield made
    made.end()


@contextmanager
def stopped(process):
    """Keep a process from doing or answering anything, though not for ever: a test that waits for it ends, too."""
    process.send_signal(signal.SIGSTOP)
    end = threading.Timer(PATIENCE / 2, process.send_signal, [signal.SIGCONT])
    end.start()
    try:
        yield
    finally:
        end.cancel()
        process.send_signal(signal.SIGCONT)


def seeds_in(store):
    return sorted(record.seed for record in study.read(store).records)


# The work


def test_a_study_on_the_cluster_is_the_study_on_this_machine(shared, tmp_path, monkeypatch):
    there, again, here = (tmp_path / f"{name}.jsonl" for name in ("there", "again", "here"))
    with study.processes(scheduler=shared.address) as executor:
        study.run(ARMS, range(2), there, executor)
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", shared.address)  # the other way to name it
    before = {child.pid for child in psutil.Process().children()}
    study.run(ARMS, range(2), again)
    assert {child.pid for child in psutil.Process().children()} == before, "nothing was spawned here"
    study.run(ARMS, range(2), here, InProcess())
    one, other, third = (without_seconds(study.read(store).records) for store in (there, again, here))
    assert len(one) == 4 and one == other == third
    assert {frozenset(json.loads(line)) for line in there.read_text().splitlines()} == {frozenset(study.records.FIELDS)}


def test_a_run_whose_worker_dies_is_done_again_elsewhere(shared, tmp_path):
    with shared.guest() as guest:

        def accident():
            assert eventually(lambda: shared.client.processing()[guest.address])
            guest.kill()

        killer = threading.Thread(target=accident)
        with study.processes(scheduler=shared.address) as executor:
            killer.start()
            frame = study.run({"one": tiny(max_episodes=40)}, range(4), tmp_path / "runs.jsonl", executor)
            killer.join()
        assert guest.wait() == -signal.SIGKILL and len(frame) == 4
    assert seeds_in(tmp_path / "runs.jsonl") == list(range(4))


def test_a_run_that_the_cluster_gives_up_is_a_broken_executor(clusters):
    made = clusters(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    made.worker()
    with study.processes(scheduler=made.address) as executor, pytest.raises(BrokenExecutor, match="died.*abort"):
        executor.submit(os.abort).result(timeout=PATIENCE)


def test_a_scheduler_that_dies_is_a_broken_executor(clusters):
    made = clusters()
    made.worker()
    with study.processes(scheduler=made.address) as executor:
        asked = [executor.submit(time.sleep, 1000) for _ in range(2)]
        assert eventually(made.client.processing)
        made.processes[0].kill()
        for future in asked:
            with pytest.raises(BrokenExecutor, match="^the scheduler of the cluster is gone$"):
                future.result(timeout=PATIENCE)


def test_what_nobody_waits_for_any_more_is_taken_back(shared):
    def in_work():
        return sum(map(len, shared.client.processing().values()))

    with study.processes(scheduler=shared.address) as executor, stopped(shared.host):
        asked = [executor.submit(time.sleep, 0) for _ in range(2)]
        assert eventually(lambda: in_work() == 2)
        asked[0].cancel()
        assert eventually(lambda: in_work() == 1)
    assert eventually(lambda: in_work() == 0)


# Who takes part


def copy(folder, module="", text=""):
    """Another kscore, with something else at the end of a module."""
    shutil.copytree(Path(kscore.__file__).parent, folder / "kscore", ignore=shutil.ignore_patterns("__pycache__"))
    with open(folder / "kscore" / module, "a") as file:
        file.write(f"\n{text}\n")


def write(folder, name, text):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def without_kscore(folder):
    write(folder, "kscore/__init__.py", "raise ModuleNotFoundError(\"No module named 'kscore'\")")  # as Python says it


def other_protocol(folder):
    write(folder, "sitecustomize.py", "import kscore.rl.config\nkscore.rl.config.PROTOCOL_VERSION += 1\n")


def other_numpy(folder):
    write(folder, "numpy-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n")


def other_code(folder):
    copy(folder, "normalizers.py", "# the same, but who knows")


def older(folder):
    copy(folder, "study/cluster.py", "del made_by")


def answering(what):
    return lambda folder: copy(folder, "study/workers.py", what)


OTHER = [
    (other_protocol, rf"protocol version {PROTOCOL_VERSION + 1} \(here {PROTOCOL_VERSION}\)[.:]"),
    (other_numpy, r"numpy 0\.1 \(here [^)]+\)[.:]"),
    (other_code, r"training code \w{16} \(here \w{16}\)[.:]"),
]
OLDER = (older, "has no attribute 'made_by'")
ODD = [
    (answering("def _train(one):\n    pass"), "a worker could not do a run, with TypeError: .*1 positional argument"),
    (answering("def _train(*_):\n    return {'status': 'solved'}"), "does not say what made it, {'status': 'solved'}"),
    (answering("def _train(*_):\n    return 'what?'"), "does not say what made it, 'what\\?'"),
    (answering("class Other:\n    pass\ndef _train(*_):\n    return Other()"), "could not do a run, .*'Other'"),
]


def test_the_code_that_shapes_a_run_is_all_that_training_uses():
    reached, left = set(), {"kscore.rl.training"}
    while left:
        reached |= left
        left = {used for module in left for used in used_by(module)} - reached
    rooms = {module.split(".")[1] for module in reached if "." in module}
    assert rooms - {"provenance", "project"} == set(cluster.ROOMS)  # these two say where a run was made


@pytest.mark.parametrize(
    ("module", "counts"),
    [("rl/algorithms.py", True), ("filters.py", True), ("figures/charts.py", False), ("study/plan.py", False)],
)
def test_other_code_counts_where_it_shapes_a_run(tmp_path, monkeypatch, module, counts):
    copy(tmp_path, module, "# the same, but who knows")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "kscore")
    assert (provenance.code(*cluster.ROOMS) != cluster.made_by()["training code"]) == counts


@pytest.fixture
def theirs(tmp_path):
    """Make an environment for a process that is not like this one."""

    def make(differ):
        (tmp_path / "theirs").mkdir()
        differ(tmp_path / "theirs")
        return {"PYTHONPATH": os.pathsep.join([str(tmp_path / "theirs"), str(ROOT)])}

    return make


@pytest.mark.parametrize(("differ", "message"), [*OTHER, OLDER, *ODD])
def test_no_run_is_taken_from_a_worker_that_joins_late_and_differs(shared, tmp_path, theirs, differ, message):
    store = tmp_path / "runs.jsonl"
    with study.processes(scheduler=shared.address) as executor:
        study.run([tiny()], [5], store, executor, progress=False)
        before = store.read_bytes()
        with shared.guest(**theirs(differ)), stopped(shared.host), pytest.raises(ValueError, match=message):
            study.run([tiny()], range(8), store, executor, progress=False)
    assert seeds_in(store) == [5] and store.read_bytes() == before
    study.run([tiny()], range(2), store, InProcess(), progress=False)
    assert seeds_in(store) == [0, 1, 5], "and the study goes on"


@pytest.mark.parametrize("differ", [without_kscore, answering("del _train")])
def test_a_worker_that_joins_late_and_cannot_read_what_it_is_sent_does_nothing(shared, theirs, differ):
    with study.processes(scheduler=shared.address) as executor, shared.guest(**theirs(differ)) as guest:
        with stopped(shared.host):
            asked = [executor.submit(workers._train, tiny(), seed) for seed in range(4)]
            assert guest.wait(timeout=PATIENCE) is not None, "Dask ends it"
        assert [cluster.checked(future.result(timeout=PATIENCE))["seed"] for future in asked] == list(range(4))


@pytest.mark.parametrize(("differ", "message"), [OTHER[0], OLDER, (without_kscore, "cannot import kscore")])
def test_a_cluster_with_a_worker_that_differs_is_refused_before_anything_is_sent(
    shared, tmp_path, capsys, theirs, differ, message
):
    with shared.guest(**theirs(differ)) as guest:
        assert main(["study", "cartpole_ppo", "--store", str(tmp_path / "runs"), "--scheduler", shared.address]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said) and f"worker {guest.address} " in said
    assert not list((tmp_path / "runs").glob("*")), "nothing was begun"


def test_a_scheduler_that_lacks_kscore_is_refused(clusters, theirs):
    made = clusters(**theirs(without_kscore))
    made.worker()
    message = "the scheduler cannot import kscore: No module named 'kscore'"
    with pytest.raises(ValueError, match=message), study.processes(scheduler=made.address):
        pass


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "the scheduler at tcp://a has no workers"),
        ({"worker b": cluster.made_by()}, None),
        ({"worker b": cluster.made_by() | {"numpy": "0.1"}}, r"worker b has numpy 0\.1 \(here \S+\): install the same"),
        ({"worker b": cluster.made_by() | {"training code": "?"}}, r"worker b has training code \? \(here \w{16}\)"),
        ({"worker b": cluster.made_by(), "worker c": OSError("closed")}, "worker c .* is gone: closed"),
        (
            {"the scheduler": cluster.made_by() | {"numpy": "0.1"}, "worker b": cluster.made_by()},
            None,
        ),  # it makes no runs
        (
            {"the scheduler": cluster.made_by() | {"protocol version": 0}, "worker b": cluster.made_by()},
            r"the scheduler has protocol version 0 \(here \d+\): install the same on both",
        ),
    ],
)
def test_a_cluster_is_checked_before_anything_is_sent(answers, message):
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        cluster.check_members({"the scheduler": cluster.made_by()} | answers, "tcp://a")


@contextmanager
def process(script, *arguments, stderr, **environment):
    """Run a script in a process of its own, which is gone afterwards."""
    started = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


# Wrong addresses

SENTENCE = "kscore: scheduler must be the address of a running Dask scheduler, got "

HURRIED = """
import socket, sys, time
from kscore.__main__ import main
from kscore.study import cluster

cluster.PATIENCE = 2
known = socket.getaddrinfo

def look_up(host, port, family=0, type=0, proto=0, flags=0):
    time.sleep(1000 if host == "slow.invalid" and not flags & socket.AI_NUMERICHOST else 0)
    return known(host, port, family, type, proto, flags)

socket.getaddrinfo = look_up
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def places(shared):
    """Addresses where something else than a scheduler listens, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened to
        ports = {
            "silent": silent.getsockname()[1],
            "nobody": nobody.getsockname()[1],
            "dashboard": shared.client.scheduler_info()["services"]["dashboard"],
        }
        yield {name: f"tcp://127.0.0.1:{port}" for name, port in ports.items()} | {
            "worker": shared.host.address,
            "certified": f"tls://127.0.0.1:{ports['nobody']}",
        }


@pytest.mark.long
def test_a_wrong_address_is_told_in_time_and_the_process_ends(places, tmp_path):
    study_it, run_it = ["study", "cartpole_ppo", "--store", str(tmp_path / "runs")], ["run", "05"]
    wrong = [(study_it, places[name]) for name in ("silent", "nobody", "dashboard")]
    wrong += [(study_it, "tcp://slow.invalid:8786"), (run_it, places["silent"])]
    with ExitStack() as started:
        processes = [
            started.enter_context(process(HURRIED, *command, "--scheduler", address, stderr=subprocess.PIPE))
            for command, address in wrong
        ]
        for (_, address), ending in zip(wrong, processes, strict=True):
            _, said = ending.communicate(timeout=60)  # mostly to start so many at once; a hang would be for ever
            assert ending.returncode == 2
            assert said.startswith(f"{SENTENCE}{address!r}: ") and said.count("\n") == 1, said
    assert not list((tmp_path / "runs").glob("*"))


def test_the_patience_is_a_quarter_of_a_minute():
    assert cluster.PATIENCE + cluster.PARTING <= 15


@pytest.mark.parametrize(
    "address",
    [
        "{nobody}",
        "{worker}",
        "{certified}",
        "nowhere:",
        "",
        "file:///tmp/x",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:123456",
        "\0:1",
        "inproc://127.0.0.1/1/1",
        "http://127.0.0.1:1",
    ],
)
def test_a_wrong_address_gets_a_sentence(monkeypatch, places, address):
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    address, start, before = address.format(**places), time.monotonic(), threading.active_count()
    with pytest.raises(ValueError, match=f"^{re.escape(SENTENCE[8:] + repr(address))}: .+"), cluster.executor(address):
        pass
    assert time.monotonic() - start < 1 + cluster.PARTING + 5  # for a machine that is busy
    assert eventually(lambda: threading.active_count() <= before, 10)


def test_the_patience_covers_what_the_members_are_asked(monkeypatch, shared):
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    message = f"^{SENTENCE[8:]}'{shared.address}': no answer within 1 s$"
    with stopped(shared.host), pytest.raises(ValueError, match=message), study.processes(scheduler=shared.address):
        pass


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ValueError, match=r"a scheduler needs the extra 'cluster': pip install"),
        cluster.executor("tcp://a"),
    ):
        pass


# A cluster that has been left

STUDY = """
import signal, sys
from kscore.__main__ import main
from kscore.rl import RunConfig
from kscore.study import plan

config = RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=None, hidden=(8,), max_episodes=10)
plan.chosen = lambda parts: ["tiny"]
plan.grids_of = lambda name: {}
plan.part = lambda name: plan.Part("tiny", {"one": config}, range(400))
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
sys.exit(main(["study", "tiny", *sys.argv[1:]]))
"""
LEFT = "the cluster has no workers left: waiting for one to come back; Ctrl-C ends it, and what is finished is kept\n"


@pytest.mark.long
def test_a_study_whose_workers_are_gone_says_so_goes_on_with_the_next_and_can_be_ended(clusters, tmp_path):
    made, store, said, note = clusters(), tmp_path / "tiny.jsonl", tmp_path / "said", tmp_path / "note"
    first, where = made.worker(), ["--store", str(tmp_path), "--scheduler", made.address]

    def stored():
        return store.read_bytes().count(b"\n") if store.exists() else 0

    with open(said, "w") as stderr, process(STUDY, *where, stderr=stderr, KSCORE_PROGRESS=str(note)) as studying:
        assert eventually(lambda: stored() > 2)
        first.kill()
        assert eventually(lambda: LEFT in said.read_text())
        assert eventually(lambda: note.read_text() == json.dumps(LEFT.strip()))
        before = stored()
        with made.guest():
            assert eventually(lambda: stored() > before)
            assert said.read_text().count(LEFT) == 1
        assert eventually(lambda: said.read_text().count(LEFT) == 2)
        held = store.read_bytes()
        studying.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert studying.wait(timeout=60) == 130
    assert time.monotonic() - start < cluster.PARTING + 5
    assert said.read_text().endswith("kscore: stopped. Every finished run is kept; the same command goes on.\n")
    assert "Traceback" not in said.read_text()
    assert store.read_bytes() == held and not study.read(store).damaged


def test_nothing_listens_on_a_network_port_without_a_cluster(tmp_path):
    script = f"""
import psutil
from kscore import study
from kscore.rl import RunConfig
config = RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=None, hidden=(8,), max_episodes=2)
with study.processes(1) as executor:
    study.run([config], [0], {str(tmp_path / "runs.jsonl")!r}, executor, progress=False)
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    print([c for p in family for c in p.net_connections() if c.status == "LISTEN"])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"
