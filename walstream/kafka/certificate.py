"""Reasons why a broker's certificate is refused: librdkafka gives none.

One handshake more, by Python's own TLS and with the same authorities, tells an
authority that is not known, an end of validity and another name apart.
"""

import socket
import ssl
from pathlib import Path
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.pipeline.outage import Outage

_TIMEOUT_S: Final = 2.0
_NOT_YET, _EXPIRED, _NAME, _ADDRESS = 9, 10, 62, 64  # OpenSSL's X509_V_ERR_*
_UNKNOWN: Final = frozenset({2, 18, 19, 20, 21})
_CLOCK: Final = "renew the broker's certificate, or set this machine's clock"


class CertificateProbe:
    """Looks at brokers' certificates as a client with these properties does."""

    def __init__(self, properties: ClientProperties) -> None:
        self._authorities = str(properties.get("ssl.ca.location", ""))
        self._pem = str(properties.get("ssl.ca.pem", ""))
        name = properties.get("ssl.endpoint.identification.algorithm", "https")
        self._names = str(name).lower() != "none"

    def at(self, host: str, port: int) -> Outage | None:
        """Return what is wrong with the broker's certificate; None: nothing was found.

        Takes two seconds at most.
        """
        host = host.strip("[]")
        try:
            context = self._context()
            with (
                socket.create_connection((host, port), _TIMEOUT_S) as plain,
                context.wrap_socket(plain, server_hostname=host),
            ):
                return None
        except ssl.SSLCertVerificationError as error:
            return self._outage(host, port, error)
        except (OSError, ValueError):
            return None

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self._names
        if self._pem:
            context.load_verify_locations(cadata=self._pem)
        elif not self._authorities or self._authorities == "probe":
            context.load_default_certs()
        elif Path(self._authorities).is_dir():
            context.load_verify_locations(capath=self._authorities)
        else:
            context.load_verify_locations(cafile=self._authorities)
        return context

    def _outage(
        self, host: str, port: int, error: ssl.SSLCertVerificationError
    ) -> Outage:
        what, code = f"the certificate of {host}:{port}", error.verify_code
        if code == _EXPIRED:
            return Outage(f"{what} has expired", _CLOCK, refused=True)
        if code == _NOT_YET:
            return Outage(f"{what} is not valid yet", _CLOCK, refused=True)
        if code in {_NAME, _ADDRESS}:
            return Outage(
                f"{what} is another host's: {error.verify_message.rstrip('.')}",
                "write the certificate's name in bootstrap.servers, or in the broker's"
                " advertised.listeners",
                refused=True,
            )
        if code in _UNKNOWN:
            return Outage(
                f"{what} is signed by an unknown authority: {error.verify_message}",
                "set ssl.ca.location to the certificate of the authority that signed"
                " it",
                refused=True,
            )
        return Outage(f"{what} is not valid: {error.verify_message}", _CLOCK)
