"""Finds what makes a launch on a cluster slow or fail, from the measurements of `concertina doctor --cluster`.

Hosts with the same fault share a finding, which names the first few. Uses only the standard library, since hosts of a cluster may have
nothing else installed.
"""
import itertools
import json
import statistics
import sys
import typing

from ..names import bytes_text, counted, duration_text, ranges, text_table
from . import Options

Json = dict[str, typing.Any]
MIB = 1 << 20
Check = tuple[bool, str, typing.Callable[[Json, Json], str], str, str]


class Finding(typing.NamedTuple):
    """`error`: a launch would fail, hang or lose state; otherwise it may be slow."""
    bound: str  # or what most hosts have
    check: str
    error: bool
    remedy: str
    what: str  # hosts or ranks, and values


def first_few(texts: typing.Sequence[str]) -> str:
    return "; ".join(texts[:4]) + (f"; and {len(texts) - 4} more" if len(texts) > 4 else "")


def finding(texts: typing.Sequence[str], check: str, bound: str, remedy: str, error: bool = False, before: str = "") -> list[Finding]:
    return [Finding(bound, check, error, remedy, before + first_few(texts))] if texts else []


def speed_text(link: Json) -> str:
    return f"{duration_text(link['latency'])}, {bytes_text(link['bandwidth'])}/s"


def _disk(facts: Json, host: Json) -> str:
    disk, usual, bound = host["disk"], facts["usual_disk"], facts["slow_disk"]
    if disk["syncs"] == 0 or all(disk[figure] >= bound[figure] for figure in bound):
        return ""
    return (f"{disk['syncs']:.0f} fsyncs/s, {bytes_text(disk['written'])}/s, the median is {usual['syncs']:.0f}, "
            f"{bytes_text(usual['written'])}/s")


def _memory(facts: Json, host: Json) -> str:
    usual = facts["usual_memory"]
    return "" if abs(host["memory"] - usual) <= 0.1 * usual else f"{bytes_text(host['memory'])}, the median is {bytes_text(usual)}"


# For each check: whether it is an error, its name, what is wrong with a host (empty: nothing), the bound and the remedy.
HOST_CHECKS: list[Check] = [
    (True, "run.dir", lambda facts, host: "" if host["seen"] else f"does not see {facts['directory']}",
     "a new file is visible on all hosts within 3 s",
     "set run.dir to a file system that all hosts share, at the same path on each"),
    (True, "disk", lambda facts, host: host["refusal"], "run.dir is writable",
     "free some space, raise the quota, or set run.dir to a writable directory"),
    (True, "locks", lambda facts, host: "" if host["excluded"] else "a lock held by another host is granted",
     "locks in run.dir are exclusive, so that a run has only one launch",
     "mount it with cluster-wide locks (NFS without nolock, Lustre with flock)"),
    (False, "locks", lambda facts, host: "" if host["locks"] else "locks are refused", "file locks in run.dir",
     "mount it with locks, or remove run.lock.held by hand after a kill"),
    (False, "disk", lambda facts, host: f"{bytes_text(host['free'])} free" if not host["refusal"] and 0 < host["free"] < 1024 * MIB else "",
     "1 GiB free in run.dir", "free some space, or set run.dir to another disk"),
    (False, "reserve", lambda facts, host: "" if host["reserves"] else "fallocate is refused",
     "space for the next checkpoint is reserved in run.dir", "watch the free space: a full disk is only noticed when a checkpoint fails"),
    (False, "disk speed", _disk, "10 fsyncs/s, and a quarter of the median",
     "find other writers, or set run.dir to a faster disk: all ranks wait for the slowest"),
    (False, "/dev/shm",
     lambda facts, host: "" if host["shared_memory"] >= 64 * MIB * host["ranks"] else f"{bytes_text(host['shared_memory'])} free",
     "64 MiB per rank, for MPI messages and snapshots",
     "remove files there, or mount it with a larger size= (container: --shm-size)"),
    (True, "limits", lambda facts, host: "" if host["open_files"] >= (least := 256 + len(facts["ranks"])) else
     f"{host['open_files']:.0f} open files of {least}", "256 open files, and one per rank", "ulimit -n 4096, or LimitNOFILE of the batch system's daemon"),
    (False, "limits", lambda facts, host: f"{bytes_text(host['locked_memory'])} of locked memory"
     if host["infiniband"] and host["locked_memory"] < 64 * MIB * host["ranks"] else "",
     "64 MiB per rank with InfiniBand, otherwise MPI may not use it",
     "ulimit -l unlimited, or LimitMEMLOCK=infinity of the batch system's daemon"),
    (False, "clock", lambda facts, host: "" if abs(host["ahead"]) <= 0.5 else f"{host['ahead']:+.2f} s", "0.5 s from the first host's clock",
     "start chronyd or systemd-timesyncd: otherwise times of logs and files are wrong"),
    (False, "load", lambda facts, host: "" if host["busy"] <= max(0.5, 0.1 * host["usable"])
     else f"other processes use {host['busy']:.1f} of {host['usable']} CPUs",
     "a tenth of the CPUs, or half a CPU", "find the processes with `top`, stop them or exclude the host: all ranks wait for the slowest"),
    (False, "memory", _memory, "within a tenth of the median", "plan for the smallest (`concertina plan search`), or exclude it"),
]


def _judge_figure(facts: Json, figure: str, bound: str) -> list[Finding]:
    """Finds hosts most of whose links are slow, and other slow links."""
    names, links, limit = [host["name"] for host in facts["hosts"]], facts["links"], facts["slow_link"][figure]
    size, sign = len(names), 1 if figure == "latency" else -1
    rows = [links[figure][at * size:][:size] for at in range(size)]
    slow = [{peer for peer, value in enumerate(row) if peer != host and sign * value > sign * limit} for host, row in enumerate(rows)]
    slow_hosts = {host for host in range(size) if 2 * len(slow[host]) > size - 1}

    def middle(host: int, one: str, best_last: bool) -> float:
        values = sorted((links[one][host * size + peer] for peer in range(size) if peer != host), reverse=best_last)
        return values[(len(values) - 1) // 2]

    def host_text(host: int) -> str:
        usual = {"latency": middle(host, "latency", False), "bandwidth": middle(host, "bandwidth", True)}
        which = "all its links" if len(slow[host]) == size - 1 else f"{len(slow[host])} of {size - 1} links"
        return f"{names[host]}: {which}: {speed_text(usual)}"

    pairs = [(one, other) for one in range(size) if one not in slow_hosts for other in sorted(slow[one]) if other > one and other not in slow_hosts]
    limit_text = f"{bound}: {speed_text(facts['usual_link'])}"
    return finding([host_text(host) for host in sorted(slow_hosts)], figure, limit_text,
                   "check its network card, cable, switch port and power saving, or exclude it") + \
        finding([f"{names[one]}-{names[other]}: " + speed_text({name: links[name][one * size + other] for name in links})
                 for one, other in pairs], figure, limit_text, "check the route between the two, or use only one of them")


def _judge_links(facts: Json) -> list[Finding]:
    found = []
    if facts["links"]["latency"]:
        found += _judge_figure(facts, "bandwidth", "a quarter of the usual value")
        found += _judge_figure(facts, "latency", "four times the usual value plus 50 µs")
    settings = {rank["host"]: f" with OMPI_MCA_btl={rank['environment']['OMPI_MCA_btl']}"
                for rank in facts["ranks"] if "OMPI_MCA_btl" in rank["environment"]}
    over_tcp = [f"{host['name']}: {speed_text(host['local'])}{settings.get(at, '')}"
                for at, host in enumerate(facts["hosts"]) if host["looped"] > 8 * MIB]  # less may be from other processes
    return found + finding(over_tcp, "transport", "shared memory",
                           "unset OMPI_MCA_btl, or add vader to it (sm in Open MPI 5), also in mca-params.conf",
                           before="messages within a host use TCP: ")


def _judge_same(facts: Json, values: typing.Sequence[str], check: str, remedy: str, error: bool = False, before: str = "") -> list[Finding]:
    """Finds ranks whose value differs from that of most ranks; "" means no value."""
    having: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        if value:
            having.setdefault(value, []).append(rank)
    if len(having) < 2:
        return []
    usual = max(having, key=lambda value: (len(having[value]), -having[value][0]))  # for ties, that of rank 0
    others = [f"{counted(len(ranks), 'rank')} on {first_few(sorted({facts['ranks'][rank]['name'] for rank in ranks}))}: {value}"
              for value, ranks in sorted(having.items()) if value != usual]
    return finding(others, check, f"most ranks: {usual}", remedy, error, before)


def _is_crowded(host: Json, ranks: typing.Sequence[Json]) -> bool:
    """Whether a CPU has more than one thread, and more than if its host's threads were spread evenly."""
    threads: dict[int, float] = {}
    for rank, cpu in ((rank, cpu) for rank in ranks for cpu in rank["cpus"]):
        threads[cpu] = threads.get(cpu, 0) + rank["threads"] / len(rank["cpus"])
    even = sum(rank["threads"] / len(host["cpus"]) for rank in ranks)
    return any(count > max(1, even) + 1e-6 for count in threads.values())


def _judge_cores(facts: Json) -> list[Finding]:
    on: dict[int, list[Json]] = {}
    for number, rank in enumerate(facts["ranks"]):
        on.setdefault(rank["host"], []).append(rank | {"rank": number})
    usable, cores = ({host: set(itertools.chain.from_iterable(rank[kind] for rank in ranks)) for host, ranks in on.items()}
                     for kind in ("cpus", "cores"))
    crowded = {host: _is_crowded(facts["hosts"][host], ranks) for host, ranks in on.items()}
    crowds = [f"{host['name']}: rank{'s' if len(on[at]) != 1 else ''} {ranges([rank['rank'] for rank in on[at]])} on CPU "
              f"{ranges(sorted(usable[at]))} of {ranges(host['cpus'])}" for at, host in enumerate(facts["hosts"]) if crowded.get(at)]
    even = [rank["host"] if not crowded[rank["host"]] else None for rank in facts["ranks"]]
    bindings = ["" if host is None or len(on[host]) < 2 else "bound" if len(rank["cpus"]) < len(usable[host]) else "not bound"
                for host, rank in zip(even, facts["ranks"])]
    names = {facts["hosts"][host]["name"] for host in on if crowded[host]}
    warnings = [one["text"] for one in facts["thread_warnings"] if one["host"] not in names]
    bind = "`mpirun --map-by slot:PE=THREADS --bind-to core`, or --bind-to none, and one launch per host"
    return finding(crowds, "binding", "a CPU per thread", bind) + _judge_same(facts, bindings, "binding", bind) + \
        finding(warnings, "threads", "a core per thread", "fewer ranks there, or a smaller run.threads") + \
        _judge_same(facts, ["" if host is None else counted(len(cores[host]), "core") for host in even], "cores",
                    "ranks by cores (-H a:4,b:2), or check what limits them there")


def _judge_ranks(facts: Json) -> list[Finding]:
    ranks = facts["ranks"]
    found = _judge_same(facts, [rank["program"] for rank in ranks], "program", "install the same build on all hosts, otherwise a launch is refused", True)
    found += _judge_same(facts, [rank["mpi"] for rank in ranks], "mpi", "use one MPI library on all hosts; check PATH and LD_LIBRARY_PATH there", True)
    found += _judge_same(facts, [facts["hosts"][rank["host"]]["processor"] for rank in ranks], "processor",
                         "use one kind of processor, otherwise all use the instructions of the weakest, and bits may differ")
    for name in sorted({name for rank in ranks for name in rank["environment"]}):
        found += _judge_same(facts, [rank["environment"].get(name, "not set") for rank in ranks], "environment",
                             f"`mpirun -x {name}`, and check the shell's startup files there", name.startswith("CONCERTINA__"),
                             f"{name} of ")
    return found


def judge(facts: Json) -> list[Finding]:
    """Returns all findings, errors first."""
    facts = facts | {"usual_memory": statistics.median(host["memory"] for host in facts["hosts"])}
    found = _judge_links(facts)
    for error, check, says, bound, remedy in HOST_CHECKS:
        said = [(host["name"], says(facts, host)) for host in facts["hosts"]]
        found += finding([f"{name}: {text}" for name, text in said if text], check, bound, remedy, error)
    found += _judge_cores(facts) + _judge_ranks(facts)
    return sorted(found, key=lambda one: not one.error)


def main(options: Options) -> int:
    """Returns 1 if a launch would fail."""
    facts = json.load(sys.stdin)
    found, link = judge(facts), {figure: facts["usual_link"][figure] for figure in ("latency", "bandwidth")}
    rows = [row for one in found for row in (["error" if one.error else "warning", one.check, one.what],
                                             ["", "", f"bound: {one.bound}"], ["", "", f"try: {one.remedy}"])]
    text = text_table(rows, 3) + f"{counted(len(facts['hosts']), 'host')} with {counted(len(facts['ranks']), 'rank')}: " \
        f"{counted(len(found), 'finding')} in {facts['seconds']:.1f} s" + \
        (f"; usual link: {speed_text(link)}" if link["bandwidth"] > 0 else "") + "\n"
    options.print_result(text, {"hosts": len(facts["hosts"]), "ranks": len(facts["ranks"]), "link": link,
                                "findings": [one._asdict() for one in found], "seconds": facts["seconds"]})
    return int(any(one.error for one in found))
