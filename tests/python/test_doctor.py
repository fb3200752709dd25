"""Findings of `doctor --cluster`: each fault separately, on few hosts and on many."""
import itertools
import json
import os
import subprocess
import sys

import concertina
import pytest
from concertina.commands.doctor import judge

GIB = 1 << 30


def healthy(count):
    """Hosts h0, h1, ... with two ranks bound to four of eight cores each."""
    hosts = [{"name": f"h{host}", "processor": "Xeon avx2", "ranks": 2, "usable": 8, "cpus": list(range(8)), "memory": 64 * GIB + host,
              "shared_memory": 32 * GIB, "busy": 0, "ahead": 0, "open_files": 1e6, "locked_memory": 8 * GIB, "infiniband": True,
              "local": {"latency": 3e-7, "bandwidth": 1e10}, "looped": 0, "seen": True, "excluded": True, "locks": True, "reserves": True,
              "refusal": "", "free": 100 * GIB, "disk": {"syncs": 300 + host % 7, "written": GIB}} for host in range(count)]
    ranks = [{"host": host, "name": f"h{host}", "cpus": list(range(4 * half, 4 * half + 4)), "cores": list(range(4 * half, 4 * half + 4)),
              "threads": 4, "program": "build 1", "mpi": "Open MPI 4", "environment": {"OMP_NUM_THREADS": "4"}}
             for host, half in itertools.product(range(count), range(2))]
    return {"directory": "/runs", "hosts": hosts, "ranks": ranks, "thread_warnings": [], "seconds": 1.25,
            "links": {"latency": [5e-6] * count**2, "bandwidth": [4e9] * count**2},
            "usual_link": {"latency": 5e-6, "bandwidth": 4e9}, "slow_link": {"latency": 55e-6, "bandwidth": 1e9},
            "usual_disk": {"syncs": 303, "written": GIB}, "slow_disk": {"syncs": 50, "written": 100 << 20}}


def host(**changes):
    return lambda facts: facts["hosts"][2].update(changes)


def rank(*numbers, **changes):
    return lambda facts: [facts["ranks"][number].update(changes) for number in numbers]


def link(figure, value, *peers):
    """Changes host 2's link to each of `peers`, or to all others."""
    def change(facts):
        count = len(facts["hosts"])
        for peer in peers or set(range(count)) - {2}:
            facts["links"][figure][2 * count + peer] = facts["links"][figure][peer * count + 2] = value
    return change


def over_tcp(facts):
    host(looped=GIB)(facts)
    rank(*range(len(facts["ranks"])), environment={"OMP_NUM_THREADS": "4", "OMPI_MCA_btl": "tcp,self"})(facts)


FAULTS = [  # fault, whether it is an error, the check, and the message, for host or rank 2
    (link("bandwidth", 5e8), False, "bandwidth", "h2: all its links"),
    (link("latency", 2e-4), False, "latency", "h2: all its links"),
    (link("bandwidth", 5e8, 1), False, "bandwidth", "h1-h2: 5 µs, "),
    (link("latency", 2e-4, 1), False, "latency", "h1-h2: 200 µs, "),
    (host(looped=GIB), False, "transport", "h2: 0.3 µs, "),
    (over_tcp, False, "transport", "with OMPI_MCA_btl=tcp,self"),
    (host(ahead=-0.8), False, "clock", "h2: -0.80 s"),
    (host(seen=False), True, "run.dir", "h2: does not see /runs"),
    (host(excluded=False), True, "locks", "h2: a lock"),
    (host(locks=False), False, "locks", "h2: locks are refused"),
    (host(refusal="No space", free=1), True, "disk", "h2: No space"),
    (host(free=GIB // 2), False, "disk", "h2: 512 MiB free"),
    (host(reserves=False), False, "reserve", "h2: "),
    (host(disk={"syncs": 40, "written": GIB}), False, "disk speed", "h2: 40 fsyncs/s"),
    (host(disk={"syncs": 300, "written": 1 << 20}), False, "disk speed", "h2: 300 fsyncs/s, 1 MiB/s, the median is 303, 1 GiB/s"),
    (host(shared_memory=64 << 20), False, "/dev/shm", "h2: 64 MiB free"),
    (host(open_files=100), True, "limits", "h2: 100 open files"),
    (host(locked_memory=65536), False, "limits", "h2: 64 KiB of locked"),
    (host(busy=2), False, "load", "h2: other processes use 2.0 of 8 CPUs"),
    (host(memory=32 * GIB), False, "memory", "h2: 32 GiB, the median is 64 GiB"),
    (host(processor="EPYC avx512f"), False, "processor", "2 ranks on h2: EPYC avx512f"),
    (rank(4, 5, cpus=[0, 1, 2, 3]), False, "binding", "h2: ranks 4-5 on CPU 0-3 of 0-7"),
    (rank(4, 5, cpus=list(range(8))), False, "binding", "2 ranks on h2: not bound"),
    (rank(4, 5, cores=[0, 1, 2, 3]), False, "cores", "2 ranks on h2: 4 cores"),
    (rank(4, program="build 2"), True, "program", "1 rank on h2: build 2"),
    (rank(4, mpi="MPICH"), True, "mpi", "1 rank on h2: MPICH"),
    (rank(4, environment={}), False, "environment", "OMP_NUM_THREADS of 1 rank on h2: not set"),
    (rank(4, environment={"OMP_NUM_THREADS": "4", "CONCERTINA__LR__KIND": "x"}), True, "environment", "CONCERTINA__LR__KIND of 1 rank on h2: x"),
]


@pytest.mark.parametrize("count", [3, 4, 7, 100])
def test_a_fault_is_named_and_nothing_else(count):
    assert not judge(healthy(count))
    for make, error, check, what in FAULTS:
        facts = healthy(count)
        make(facts)
        found, = judge(facts)
        assert (found.error, found.check) == (error, check) and what in found.what
        assert len(found.what) < 400 and found.remedy and found.bound


def test_many_hosts_are_one_finding_and_errors_come_first():
    facts = healthy(8)
    for one in facts["hosts"][1:]:
        one["ahead"] = 9
    rank(3, mpi="MPICH")(facts)
    error, found = judge(facts)
    assert error.error and not found.error and found.what.startswith("h1: +9.00 s; ") and found.what.endswith("; and 3 more")


def test_warnings_of_threads_are_not_repeated_for_ranks_on_one_cpu():
    facts = healthy(3)
    facts["thread_warnings"] = [{"host": "h2", "text": "h2 has 4 cores for 8 threads"}]
    assert [found.check for found in judge(facts)] == ["threads"]
    rank(4, 5, cpus=[0])(facts)
    assert [found.check for found in judge(facts)] == ["binding"]
    rank(*range(6), cpus=list(range(8)), threads=8)(facts)  # evenly shared
    assert [found.check for found in judge(facts)] == ["threads"]


def test_text_and_json_agree():
    facts = healthy(3)
    host(seen=False)(facts)
    package = os.path.dirname(concertina.__file__)
    said = {words: subprocess.run([sys.executable, package, "--parsed", "doctor", *words], input=json.dumps(facts), capture_output=True,
                                  text=True, check=False) for words in ((), ("--json=",))}
    assert {one.returncode for one in said.values()} == {1}
    assert said[()].stdout.startswith("error  run.dir  h2: does not see /runs\n")
    assert said[()].stdout.endswith("\n3 hosts with 6 ranks: 1 finding in 1.2 s; usual link: 5 µs, 3.725 GiB/s\n")
    assert json.loads(said[("--json=",)].stdout)["findings"][0]["what"] == "h2: does not see /runs"
