#!/usr/bin/env python3
"""`concertina report --serve`: its answers, who gets them, and what a browser shows, at two widths, light and dark.

usage: serve_test.py CONCERTINA. Without a headless Chromium, that part is skipped with a message.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

CONCERTINA = os.path.abspath(sys.argv[1])
TRAIN = ["train", "data.text=text.txt", "model.layers=2", "model.width=32", "model.heads=2", "model.context=32", "batch.global=8",
         "batch.microbatches=4", "run.threads=1", "eval.batches=1", "eval.every=10", "checkpoint.every=1000"]


def train(name, *more, wait=True):
    process = subprocess.Popen([CONCERTINA, *TRAIN, f"run.name={name}", *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if wait:
        assert process.wait() == 0, name
    return process


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen([CONCERTINA, "report", "--serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", self.address), (self.address, self.process.stderr.read())
        self.port, self.token = int(urllib.parse.urlsplit(self.address).port), self.address.split("/")[3]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(10) == 0, self.process.stderr.read()

    def ask(self, path, method="GET", token=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, f"/{token or self.token}/{path}", headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def json(self, path):
        status, text = self.ask(path)
        assert status == 200, (status, text)
        return json.loads(text)


def shown(address, width, dark):
    """Returns the page's document after its script has run."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory() as home:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", f"--window-size={width},2000",
                 "--virtual-time-budget=4000", "--dump-dom", address]
        if dark:
            words.insert(1, "--force-dark-mode")
        page = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=90, check=False).stdout
        assert page, f"{browser} shows nothing"
        return page


def check_who_is_answered(server):
    assert server.ask("")[0] == 200
    assert server.ask("", token="0" * 32)[0] == 404 and server.ask("state", token=server.token[:-1])[0] == 404
    assert server.ask("", host="evil.example")[0] == 403 and server.ask("", host=f"localhost:{server.port}")[0] == 200
    for method in ("POST", "PUT", "DELETE"):
        assert server.ask("state", method=method)[0] == 405, method
    assert server.ask("../../etc/passwd")[0] == 404 and server.ask("metrics.jsonl")[0] == 404
    listening = [line.split()[1] for line in open("/proc/net/tcp", encoding="ascii") if line.split()[3] == "0A"]
    assert f"0100007F:{server.port:04X}" in listening and f"00000000:{server.port:04X}" not in listening
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    silent[0].sendall(b"GET / HTT")
    began = time.time()
    assert server.ask("state")[0] == 200 and time.time() - began < 2, "silent clients delay others"
    with socket.create_connection(("127.0.0.1", server.port)) as large:
        large.sendall(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n")
    assert server.ask("state")[0] == 200


def said(state):
    """Returns all texts of the page, and its tiles."""
    return json.dumps(state), {label: value for block in state["blocks"] if block["kind"] == "tiles" for value, label in block["tiles"]}


def check_run():
    train("one", "run.steps=30")
    with Server("runs/one") as server:
        check_who_is_answered(server)
        text, tiles = said(server.json("state"))
        assert tiles["steps"] == "30 of 30" and "finished" in text and any(label.startswith("held-out loss at step 30") for label in tiles), tiles
        assert "Bubble, by cause" in server.ask("report")[1]
        lines = pathlib.Path("runs/one/metrics.jsonl").read_text(encoding="utf-8").splitlines(True)
        pathlib.Path("runs/one/metrics.jsonl").write_text("".join(lines[:12]), encoding="utf-8")  # as truncated by a resume
        assert said(server.json("state"))[1]["steps"] == "12 of 30"
        pages = [shown(server.address, width, dark) for width in (1400, 390) for dark in (False, True)]
        for page in filter(None, pages):
            assert "12 of 30" in page and ">no answer" not in page, page[-3000:]
    return any(pages)


def check_running():
    running = train("two", "run.steps=100000", wait=False)
    try:
        metrics = pathlib.Path("runs/two/metrics.jsonl")
        while not (metrics.exists() and metrics.stat().st_size > 2000):
            assert running.poll() is None
            time.sleep(0.05)
        with Server() as server:  # of all in runs/
            assert [row[0]["text"] for row in server.json("state")["blocks"][0]["rows"]] == ["one", "two"]
            first = server.json("state?trial=two")
            time.sleep(1)
            later = server.json("state?trial=two")
            done = [int(said(state)[1]["steps"].split()[0].replace(",", "")) for state in (first, later)]
            assert first["title"] == "two" and done[1] > done[0] and "finished" not in later["sub"], (done, later["sub"])
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def check_study():
    keys = "\n".join(word.replace("=", " = ") for word in TRAIN[2:] if not word.startswith("model.heads"))
    pathlib.Path("grid.toml").write_text(
        f"name = 'grid'\nseeds = [1]\n[set]\nrun.steps = 8\ndata.text = '{os.path.abspath('text.txt')}'\n{keys}\n"
        "[grid]\nmodel.heads = [2, 3]\n", encoding="utf-8")
    subprocess.run([CONCERTINA, "study", "run", "grid.toml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    with Server("studies/grid/") as server:
        text, _ = said(server.json("state"))
        assert "8 of 8" in text and "failed: " in text and "heads" in text, text
        assert said(server.json("state?trial=1"))[1]["steps"] == "8 of 8"
        assert server.ask("state?trial=2")[0] == 500 and server.ask("state?trial=x")[0] == 404
        page = shown(server.address, 390, False)
        assert page is None or "model.heads=3" in page, page[-3000:]


def check_refusals():
    for words, text in ((["nothing"], "neither a run nor a study"), (["runs/one", "--json"], "no effect with --serve"),
                        (["runs/one", "--port", "70000"], "port")):
        done = subprocess.run([CONCERTINA, "report", "--serve", *words], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2 and text in done.stderr, done
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = subprocess.run([CONCERTINA, "report", "--serve", "runs/one", "--port", str(other.getsockname()[1])], capture_output=True,
                              text=True, timeout=20, check=False)
        assert done.returncode == 2 and "cannot use port" in done.stderr, done


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    pathlib.Path("text.txt").write_text(" ".join(str(i * i % 977) for i in range(4000)), encoding="utf-8")
    seen = check_run()
    check_running()
    check_study()
    check_refusals()
if not seen:
    print("no headless browser here: what the page shows was not tested")
print("4 passed, 0 failed")
