"""A server of pages for this machine alone: it answers GET below an address that has a random token, and only reads.

Slow and silent clients hold up nobody: each has a thread, and few seconds for its one request.
"""
from __future__ import annotations

import http.server
import secrets
import signal
import sys
import threading
import typing
import urllib.parse

from .errors import InputError

CLIENT_SECONDS = 10
Answer = tuple[int, str, str]  # status, type and text
Handler = typing.Callable[[str, dict[str, str]], Answer]  # of the path below the token, and the query
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}


class _Request(http.server.BaseHTTPRequestHandler):
    server: PageServer
    timeout = CLIENT_SECONDS

    def setup(self) -> None:
        """A client that sends its request byte by byte is cut off, too."""
        super().setup()
        self._end = threading.Timer(CLIENT_SECONDS, self.server.shutdown_request, [self.connection])
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def do_GET(self) -> None:
        status, kind, text = self._answer()
        body = text.encode(errors="replace")
        self.send_response(status)
        for name, value in ({"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))} | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def _answer(self) -> Answer:
        server = self.server
        if self.headers.get_all("Host") not in [[f"{name}:{server.server_port}"] for name in ("127.0.0.1", "localhost")]:
            return 403, "text/plain", "another host was asked for\n"
        if self.command not in ("GET", "HEAD"):
            return 405, "text/plain", "this only reads\n"
        path, _, query = self.path.partition("?")
        token, _, path = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(errors="replace"), server.token.encode()):
            return 404, "text/plain", "not found\n"
        try:
            with server.lock:
                return server.handler(path, dict(urllib.parse.parse_qsl(query, max_num_fields=8)))
        except Exception as error:  # noqa: BLE001 - of one request: others are answered
            return 500, "text/plain", f"{error or type(error).__name__}\n"

    def version_string(self) -> str:
        return "concertina"

    def log_message(self, format: str, *args: object) -> None:
        pass


class PageServer(http.server.ThreadingHTTPServer):
    """Answers with `handler`, one request at a time."""
    block_on_close = False
    request_queue_size = 128  # connections that wait to be accepted

    def __init__(self, port: int, handler: Handler):
        self.handler, self.token, self.lock = handler, secrets.token_hex(16), threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), _Request)
        except OSError as error:
            raise InputError(f"port {port} of 127.0.0.1 cannot be had: {error.strerror}", "--port",
                             "--port 0, which takes any that is free") from error

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: typing.Any, client_address: typing.Any) -> None:
        pass  # a client that left

    def serve(self, of: str) -> None:
        """Prints the address, and answers until a signal says to stop."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, lambda *_: threading.Thread(target=self.shutdown).start())
        port = self.server_port
        sys.stderr.write(f"{of} is at the address below, for this machine alone; from another one: ssh -L {port}:127.0.0.1:{port} HOST; "
                         "Ctrl-C ends it\n")
        print(self.address, flush=True)
        self.serve_forever(0.2)
        self.server_close()
