"""Which certificate authorities are believed."""

from __future__ import annotations

import ssl
from pathlib import Path

from gossamer.errors import SettingsError


def certificates(given: str) -> str:
    """The file of authorities: the one that is set, else the system's, else the one that comes with certifi."""
    if given:
        if not Path(given).is_file():
            raise SettingsError(f"fetch.ca_file: {given} is not a file; name a file of certificates in PEM form")
        return given
    system = ssl.get_default_verify_paths().cafile
    if system:
        return system
    import certifi

    return certifi.where()
