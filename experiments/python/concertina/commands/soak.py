"""`concertina soak`: injects faults at random times into a run under `concertina run`, and reports the outcome of each.

The run is compared with an undisturbed run of the same command. The seed determines the kinds and times of faults. Only the run's processes and
files are affected; user-provided commands inject faults into hosts and disks.
"""
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import time
import typing

from ..errors import InputError, one_of
from ..files import Follower, read_json, read_lines, replace_file
from ..program import program
from ..page import page
from ..soak_report import Fault, Result, Trained, content_of, result_json, text
from . import Options

_POLL_SECONDS = 0.01
_LONGEST_WAIT = 10.0  # seconds that a fault waits for an opportunity
_LONGEST_COMMAND = 20.0  # seconds for a command that injects a fault
_LIBC = ctypes.CDLL(None)
_stopped_by: list[int] = []


class Target(typing.NamedTuple):
    """The state of the run when a fault is injected."""
    ranks: list[int]  # on this machine, including its emulated hosts
    launcher: int  # 0: none
    supervisor: int
    checkpoints: pathlib.Path


Make = typing.Callable[[Target, random.Random], bool]


@dataclasses.dataclass(frozen=True)
class Kind:
    """`make` returns False if the fault is not possible yet. Alternatively, the program named by the option `maker` starts and stops the fault."""
    make: Make | None = None
    maker: str = ""
    words: tuple[str, str] = ("", "")
    harmless: bool = False  # does not stop a launch
    ends_supervisor: bool = False
    writes: bool = False  # to the checkpoints; a disk that this program has stopped would block it forever


def _send(pids: list[int], number: int) -> bool:
    """Returns whether any of these processes existed."""
    sent = False
    for pid in filter(None, pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            sent = True
    return sent


def _link(pid: int, name: str) -> str:
    """A link in /proc; `ns/net`, the network namespace of a process, identifies its host. Empty if missing."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/{name}")
    return ""


def _rank(number: int) -> Make:
    return lambda target, chance: bool(target.ranks) and _send([chance.choice(target.ranks)], number)


def _kill_host(target: Target, chance: random.Random) -> bool:
    host = _link(chance.choice(target.ranks or [0]), "ns/net")
    return _send([rank for rank in target.ranks if _link(rank, "ns/net") == host], signal.SIGKILL)


def _kill_in_save(target: Target, chance: random.Random) -> bool:
    """Kills a rank while it saves, which takes only milliseconds for a small model."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if next(target.checkpoints.glob("*.partial"), None):
            return _rank(signal.SIGKILL)(target, chance)
        time.sleep(2e-4)
    return False


def _flip_a_bit(target: Target, chance: random.Random) -> bool:
    """Damages the newest of several checkpoints and kills a rank."""
    commits = sorted(path for path in target.checkpoints.glob("step-*") if path.name[5:].isdigit())
    if len(commits) < 2 or not target.ranks:
        return False
    with contextlib.suppress(OSError, IndexError), open(chance.choice(sorted(commits[-1].glob("shard-*"))), "r+b", buffering=0) as file:
        at = chance.randrange(os.fstat(file.fileno()).st_size)
        byte = os.pread(file.fileno(), 1, at)[0] ^ 1 << chance.randrange(8)
        os.pwrite(file.fileno(), bytes([byte]), at)
        return _rank(signal.SIGKILL)(target, chance)
    return False  # it was removed meanwhile


KINDS = {
    "kill": Kind(_rank(signal.SIGKILL)),
    "stop": Kind(_rank(signal.SIGSTOP)),
    "terminate": Kind(_rank(signal.SIGTERM)),
    "hang-up": Kind(_rank(signal.SIGHUP)),
    "cpu-limit": Kind(_rank(signal.SIGXCPU)),
    "node": Kind(_kill_host),
    "freeze": Kind(lambda target, chance: _send(target.ranks, signal.SIGSTOP)),
    "launcher": Kind(lambda target, chance: _send([target.launcher], signal.SIGKILL)),
    "stop-launcher": Kind(lambda target, chance: _send([target.launcher], signal.SIGSTOP), harmless=True),
    "supervisor": Kind(lambda target, chance: _send([target.supervisor], signal.SIGKILL), ends_supervisor=True),
    "save": Kind(_kill_in_save),
    "bit-flip": Kind(_flip_a_bit, writes=True),
    "partition": Kind(maker="host-faults", words=("cut", "mend")),
    "power-off": Kind(maker="host-faults", words=("power-off", "mend")),
    "slow-link": Kind(maker="host-faults", words=("slow", "fast"), harmless=True),
    "full-disk": Kind(maker="disk-faults", words=("full", "free"), harmless=True),
    "slow-disk": Kind(maker="disk-faults", words=("slow", "fast"), harmless=True),
}


def chosen_kinds(options: Options) -> list[str]:
    """The kinds in --faults, or all that are possible here."""
    def can_make(kind: Kind) -> bool:
        return not kind.maker or (kind.maker in options and (kind.maker == "disk-faults" or "," in options.text("hosts")))

    for name in options.all("faults"):
        if name not in KINDS:
            raise InputError(f"unknown fault '{name}'", "--faults", one_of(name, KINDS))
        if not can_make(kind := KINDS[name]):
            of_disk = kind.maker == "disk-faults"
            raise InputError(f"'{name}' requires {'' if of_disk else 'several hosts and '}a command that injects it", "--faults",
                          "--disk-faults CMD" if of_disk else "--hosts a:2,b:2 --host-faults CMD")
    return options.all("faults") or [name for name, kind in KINDS.items() if can_make(kind)]


def marked(run: pathlib.Path, executable: str = "") -> list[int]:
    """The processes of a run, found by the environment variable that the supervisor sets: on this host, or all that run `executable`."""
    entry, found, here = f"CONCERTINA_MARK={run}".encode(), [], _link(os.getpid(), "ns/net")
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with contextlib.suppress(OSError):
            is_candidate = _link(pid, "exe").startswith(executable) if executable else _link(pid, "ns/net") == here
            if is_candidate and entry in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


class Course:
    """Follows the injected faults in the run's logs. Times are seconds since the run's start, provided by the caller."""

    def __init__(self, run: pathlib.Path):
        self.faults: list[Fault] = []
        self.repeated: list[int] = []  # steps, by restart
        self.hosts: list[str] = []  # of the last launch
        self.reached = 0  # the last completed step
        self._seen_faults, self._restarts, self._metrics = (Follower(run / f"{name}.jsonl") for name in ("faults", "restarts", "metrics"))
        self._launches = run / "launches.jsonl"
        self._changed, self._count, self._launched = 0, 0, 0.0

    def seen(self, at: float) -> None:
        for fault in self.faults:
            if fault.seen is None and fault.recovered is None and fault.at <= at:
                fault.seen = at

    def recovered(self, at: float, which: typing.Callable[[Fault], bool] = bool) -> None:
        for fault in self.faults:
            if fault.recovered is None and which(fault):
                fault.recovered = at

    def follow(self, at: float) -> None:
        """Reads new log lines at time `at`."""
        if self._seen_faults.look():
            self.seen(at)
        for restart in self._restarts.look():
            if {"ended_s", "reached", "from"} <= restart.keys():
                self.seen(at - restart["ended_s"])
                self.repeated.append(restart["reached"] - restart["from"])
        self._look_at_launches(at)
        reached = max((line["step"] for line in self._metrics.look() if "step" in line), default=0)
        if reached > self.reached:
            self.reached = reached
            self.recovered(at, self._goes_on)

    def _goes_on(self, fault: Fault) -> bool:
        """Whether a new step shows that the fault is over: a step of a later launch, or of the launch that the fault was injected into.

        Ranks may complete a step after any fault, so in that launch, the second step counts; in a launch without the faulty host, the first.
        """
        if fault.seen is not None:
            return fault.seen <= self._launched
        return bool(fault.host and fault.host not in self.hosts) or (fault.harmless and self.reached > fault.reached + 1)

    def _look_at_launches(self, at: float) -> None:
        changed = self._launches.stat().st_mtime_ns if self._launches.exists() else 0
        if changed == self._changed:
            return
        launches = read_lines(self._launches)  # rewritten when a launch ends
        if len(launches) > self._count:
            self._launched = at
        self._changed, self._count = changed, len(launches)
        self.hosts = [host["host"] for host in launches[-1].get("hosts", [])] if launches else []


class SupervisedRun:
    """A run under `concertina run` with faults injected for `seconds`. It exits when this process does."""

    def __init__(self, options: Options, folder: pathlib.Path, name: str, kinds: list[str], seconds: float):
        self.options, self.folder, self.kinds, self.limit = options, folder / name, kinds, seconds
        self.mean = options.number("mean")
        self.most = options.number("at-most") if "at-most" in options else float("inf")
        self.chance = random.Random(int(options.text("seed")))
        given = options.text("checkpoints")
        self.checkpoints = pathlib.Path(os.path.abspath(given), name) if given else self.folder / "checkpoints"
        self.course = Course(self.folder)
        self.killed = False  # the supervisor, by this program
        self.ending: tuple[float, list[str]] | None = None  # when, and the command that stops a host or disk fault
        self.began = time.monotonic()
        self.process = self.start()
        self.plan()

    def start(self) -> subprocess.Popen:
        words = [program(), "run", "--ranks", self.options.text("ranks"), "--launcher", self.options.text("launcher"),
                 *(["--hosts", hosts] if (hosts := self.options.text("hosts")) else []), "--", *self.options.all("command"),
                 "--set", f"run.dir={self.folder.parent}", "--set", f"run.name={self.folder.name}", "--set", f"checkpoint.dir={self.checkpoints}"]
        with open(f"{self.folder}.log", "ab") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                                    preexec_fn=lambda: _LIBC.prctl(1, signal.SIGTERM))  # PR_SET_PDEATHSIG

    def now(self) -> float:
        return time.monotonic() - self.began

    def plan(self) -> None:
        self.next = self.now() + self.chance.expovariate(1 / self.mean)
        self.name = self.chance.choice(self.kinds)

    def run(self) -> Trained:
        """Injects faults until the run has finished."""
        try:
            code = self.follow()
            seconds = self.now()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            if self.ending:
                self.mend()
            subprocess.run([program(), "run", "--here", self.folder], stdout=subprocess.DEVNULL, check=False)
        self.course.follow(seconds)
        if code == 0:  # no later step follows the last faults
            self.course.recovered(seconds)
        result = read_json(self.folder / "result.json") if (self.folder / "result.json").exists() else {}
        steps = {line["step"]: line for line in read_lines(self.folder / "metrics.jsonl") if "step" in line}
        return Trained(result.get("state_sha256", ""), seconds, sum(line["step_ms"] for line in steps.values()) / 1e3,
                       [(step, steps[step].get("loss")) for step in sorted(steps)], self.course.faults, self.course.repeated,
                       f"`concertina run` exited with {code if code > 0 else 128 - code}: {self.folder}.log" if code else "")

    def follow(self) -> int:
        while True:
            self.course.follow(self.now())
            if (code := self.process.poll()) is not None:
                if not self.killed:
                    return code
                self.killed = False
                self.course.seen(self.now())
                self.process = self.start()
            if self.next <= self.now() < self.limit and len(self.course.faults) < self.most:
                self.inject()
            if self.ending and self.now() >= self.ending[0]:
                self.mend()
            if _stopped_by:
                os.killpg(self.process.pid, signal.SIGUSR1)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(60)
                raise InputError(f"the soak was stopped by {signal.Signals(_stopped_by[0]).name}", "concertina soak",
                              "the same command with another --out", 75)
            time.sleep(_POLL_SECONDS)

    def inject(self) -> None:
        """Waits for an opportunity to inject the planned fault; if that takes too long, plans the next one."""
        kind, host, made = KINDS[self.name], "", False
        if kind.make and not (kind.writes and self.ending):
            ranks = marked(self.folder, self.options.text("executable"))
            launcher = next((pid for pid in marked(self.folder) if pid not in ranks), 0)
            made = kind.make(Target(ranks, launcher, 0 if self.killed else self.process.pid, self.checkpoints), self.chance)
        elif kind.maker and not self.ending and (kind.maker == "disk-faults" or len(self.course.hosts) > 1):
            # One fault at a time, and never on the first host, where the supervisor runs.
            host = self.chance.choice(self.course.hosts[1:]) if kind.maker == "host-faults" else ""
            begin, end = ([*shlex.split(self.options.text(kind.maker)), word, *([host] if host else [])] for word in kind.words)
            self.ending = (self.now() + self.chance.uniform(2, 8), end)
            made = _call(begin)
        if made:
            _say(f"{self.now():.1f} s: {self.name} {host}".rstrip())
            self.course.faults.append(Fault(self.name, self.now(), kind.harmless, self.course.reached, host))
            self.killed = kind.ends_supervisor
        if made or self.now() > self.next + _LONGEST_WAIT:
            self.plan()

    def mend(self) -> None:
        _, words = self.ending or (0, [])
        self.ending = None
        _say(f"{self.now():.1f} s: {shlex.join(words)}")
        _call(words)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} info {text}", file=sys.stderr, flush=True)


def _call(words: list[str]) -> bool:
    """Runs the command that starts or stops a host or disk fault."""
    try:
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                       timeout=_LONGEST_COMMAND, check=True)
        return True
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "stdout", None) or error
        raise InputError(f"{shlex.join(words)} failed: {why}", "--host-faults or --disk-faults", "a command that works", 1) from error


def main(options: Options) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGXCPU):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda which, frame: _stopped_by.append(which))
    kinds, folder = chosen_kinds(options), pathlib.Path(os.path.abspath(options.text("out") or f"soaks/{options.text('run')}"))
    if folder.exists():
        raise InputError("the folder already exists", str(folder), "--out with a new folder")
    folder.mkdir(parents=True)
    _say(f"running without faults: {folder}/clean")
    clean = SupervisedRun(options, folder, "clean", kinds, 0).run()
    if clean.why:
        raise InputError("the run fails even without faults", f"{folder}/clean.log", "`concertina train` with the same arguments", 1)
    _say(f"finished in {clean.seconds:.3g} s; running with faults: {folder}/disturbed")
    result = Result(clean, SupervisedRun(options, folder, "disturbed", kinds, options.number("for")).run())
    replace_file(folder / "report.html", page(content_of(result, options.number("mean"), options.text("seed"))))
    options.print_result(f"{text(result)}page: {folder}/report.html\n", result_json(result))
    return 0 if result.passed else 1
