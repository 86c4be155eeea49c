"""X.509 of the simulated web: the authority's own certificate and those it signs. The one module that needs `cryptography`.

Times are those of our clock, not of the simulated web: clients check certificates by theirs.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gossamer simulated web")])
LOCAL = "localhost"
DAY = timedelta(days=1)


def new_key() -> bytes:
    """A private key on P-256."""
    return _written(ec.generate_private_key(ec.SECP256R1()))


def own_certificate(key: bytes) -> bytes:
    """The certificate an authority signs for itself, good for thirty years."""
    signer = _read(key)
    now = datetime.now(UTC)
    made = _builder(NAME, signer.public_key(), now - DAY, now + 30 * 365 * DAY)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    made = made.add_extension(_usage(authority=True), critical=True)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(signer.public_key()), critical=False)
    return made.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)


class Signer:
    """An authority at work: its key, and the one key that all the certificates it signs are for."""

    def __init__(self, key: bytes, certificate: bytes) -> None:
        self.key = _read(key)
        self.certificate = x509.load_pem_x509_certificate(certificate)
        if self.certificate.public_key() != self.key.public_key():
            raise ValueError("the certificate is for another key")
        self.leaf = ec.generate_private_key(ec.SECP256R1())
        self.leaf_key = _written(self.leaf)

    def sign(self, host: str, *, expired: bool = False) -> bytes:
        """A certificate for a host: good for a year, or until yesterday."""
        now = datetime.now(UTC)
        begin, end = (now - 91 * DAY, now - DAY) if expired else (now - DAY, now + 365 * DAY)
        names: list[x509.GeneralName] = [x509.DNSName(host)]
        if host == LOCAL:
            names += [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")]
        made = _builder(x509.Name([]), self.leaf.public_key(), begin, end)
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=True)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(authority=False), critical=True)
        made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = made.add_extension(issuer, critical=False)
        return made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(NAME, subject, key, x509.random_serial_number(), begin, end)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority, key_cert_sign=authority, crl_sign=authority, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _read(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not on an elliptic curve")
    return key


def _written(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
