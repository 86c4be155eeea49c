"""TLS of the simulated web: the name a client asks for → a certificate for it, signed by the web's own authority.

The authority is made on first use and stays in its folder: `ca.pem` is what clients are told to trust, `ca-key.pem` is nobody else's business.
Each host gets a certificate of its own when it is first asked for, over one key that lives as long as the process; hosts whose manner is so
get one that has expired, or that is a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gossamer.errors import CorruptError, UsageError, storage_error

if TYPE_CHECKING:
    from gossamer.simweb.web import Web

State = Literal["good", "expired", "stranger"]
CONTEXTS_KEPT = 1024
STRANGER = "somebody-else.invalid"


def states(web: Web) -> Callable[[str], State]:
    """How the certificates of a web's hosts are; that of a host it does not know is good."""

    def state(host: str) -> State:
        site = web.find(host)
        return site.manner.tls if site is not None else "good"

    return state


def always_good(_: str) -> State:
    """No host has a bad certificate."""
    return "good"


class Authority:
    """A certificate authority in a folder, and the TLS contexts it vouches for."""

    def __init__(self, folder: Path, state: Callable[[str], State] = always_good) -> None:
        try:
            from gossamer.simweb.serving import certificates
        except ImportError as error:
            raise UsageError(
                "TLS on the simulated web needs the simweb extra; run: pip install 'gossamer[simweb]'"
            ) from error
        self.state = state
        self.path = folder / "ca.pem"
        try:
            key = _once(folder / "ca-key.pem", 0o600, certificates.new_key)
            certificate = _once(self.path, 0o644, lambda: certificates.own_certificate(key))
            self.signer = certificates.Signer(key, certificate)
        except OSError as error:
            raise storage_error(error, str(folder)) from error
        except (TypeError, ValueError) as error:
            raise CorruptError(
                f"{folder}: its certificate authority is damaged; remove ca.pem and ca-key.pem for a new one ({error})"
            ) from error
        self.local = certificates.LOCAL
        self.context = lru_cache(maxsize=CONTEXTS_KEPT)(self._context)
        self._listening = self._context(self.local)
        self._listening.sni_callback = self._choose

    def listening(self) -> ssl.SSLContext:
        """The context to listen with: it answers for any host a client names, and as localhost to one that names none."""
        return self._listening

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, host: str | None, _: ssl.SSLContext) -> None:
        if host:
            connection.context = self.context(host.lower().rstrip("."))

    def _context(self, host: str) -> ssl.SSLContext:
        state = self.state(host)
        certificate = self.signer.sign(STRANGER if state == "stranger" else host, expired=state == "expired")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.NamedTemporaryFile() as file:  # the ssl module reads certificates from files only
            file.write(certificate + self.signer.leaf_key)
            file.flush()
            context.load_cert_chain(file.name)
        return context


def _once(path: Path, mode: int, make: Callable[[], bytes]) -> bytes:
    """What a file holds, made if it is not there; of several processes that make it the first wins."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, mode)
                file.write(make())
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            Path(draft).unlink()
    return path.read_bytes()
