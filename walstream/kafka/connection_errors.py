"""Errors of a Kafka client while brokers do not answer: the cause and its cure.

librdkafka repeats itself, and says several things of one trouble: that a connection was
cut, that a login was refused, that all brokers are down. Each code is logged once an
outage; the most telling one that was heard lately is the cause.
"""

import re
from collections.abc import Callable
from typing import Final

import structlog
from confluent_kafka import KafkaError

from walstream.errors import RETRIED
from walstream.kafka.certificate import CertificateProbe
from walstream.pipeline.outage import Outage
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT

_STALE_S: Final = 60.0  # librdkafka says the same again within 30 s
_NOISE: Final = re.compile(r"^\S+/(?:bootstrap|\d+): | \(after \d+ms in state .*\)$")
_ADDRESS: Final = re.compile(r"^(?:sasl_)?ssl://(.+):(\d+)/(?:bootstrap|\d+): ")
LOGIN: Final = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's local codes are spelt so
    KafkaError.SASL_AUTHENTICATION_FAILED,
)
_TLS: Final = KafkaError._SSL  # noqa: SLF001 - likewise
_NAME: Final = KafkaError._RESOLVE  # noqa: SLF001 - likewise
_CUT: Final = KafkaError._TRANSPORT  # noqa: SLF001 - likewise
_ALL_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - likewise
_GARBLED: Final = KafkaError._BAD_MSG  # noqa: SLF001 - likewise
TELLING: Final = (*LOGIN, _TLS, _NAME, _GARBLED, _CUT)
"""Codes that tell a cause, the most telling first."""
_LACKS: Final = "Failed to acquire SASL OAUTHBEARER token"
_UNVERIFIED: Final = "certificate verify failed"
_OPENSSL: Final = "SSL routines"
_log = structlog.get_logger()
_SIZE: Final = re.compile(r"^(?:\w+://)?(\S+)/\S+: .*Invalid response size (-?\d+)")
_LARGEST: Final = 100_000_000  # bytes of an answer of Kafka: librdkafka's own bound
_LISTENER: Final = "check that security.protocol is that of the broker's listener"
# what a code's words contain, and what then is to be done; "" fits all that is left
_CURES: Final[dict[int, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(
        LOGIN,
        (
            ("nsupported", "correct sasl.mechanism: the broker wants another"),
            *(
                (said, "check that `oauth` makes tokens that the broker accepts")
                for said in ("OAUTHBEARER", "invalid_token")
            ),
            (
                "",
                (
                    "correct sasl.username or sasl.password; ${file:...} is read "
                    "again by itself"
                ),
            ),
        ),
    ),
    _TLS: (
        (
            _UNVERIFIED,
            (
                "correct ssl.ca.location, or renew the broker's certificate: it has "
                "expired, names another host, or is signed by another authority"
            ),
        ),
        (
            "alert",
            (
                "set ssl.certificate.location and ssl.key.location, or renew the"
                " certificate: the broker refuses the one of this client, or wants one"
            ),
        ),
        (
            "client SSL authentication",
            "set ssl.certificate.location and ssl.key.location, or " + _LISTENER,
        ),
        ("", _LISTENER),
    ),
    _NAME: (
        (
            "",
            (
                "correct the host in bootstrap.servers, or the broker's"
                " advertised.listeners, or this machine's DNS"
            ),
        ),
    ),
    _CUT: (
        (
            "Connection refused",
            "start the broker, or correct bootstrap.servers: that port is closed",
        ),
        ("PLAINTEXT", _LISTENER),
        ("timed out", "check whether a firewall blocks the way"),
        ("", "check that the broker runs and that this machine can reach it"),
    ),
    _ALL_DOWN: (("", f"start the brokers if they are down, or {_LISTENER}"),),
}


def unreached(error: KafkaError) -> str:
    """Return why a connection failed, without librdkafka's own states."""
    return _NOISE.sub("", error.str())


def lacks_token(error: KafkaError) -> bool:
    """Return whether a client got no new token: no broker has refused anything yet."""
    return error.code() in LOGIN and _LACKS in error.str()


def outage(error: KafkaError) -> Outage:
    """Return the reason why a client cannot reach its brokers, and the next step."""
    text, code = unreached(error), _code(error)
    if stranger := _stranger(error):
        return stranger
    for part, hint in _CURES.get(code, ()):
        if part in text:
            return Outage(text, hint, refused=code in {*LOGIN, _TLS})
    return Outage(text, RETRIED)


def _stranger(error: KafkaError) -> Outage | None:
    """Return an error if another program has the port; None: it may be a broker.

    librdkafka takes the first letters of what it says for a size, and wants more room.
    """
    found = _SIZE.match(error.str())
    if found is None or 0 <= int(found[2]) <= _LARGEST:
        return None
    return Outage(
        f"{found[1]} sent an answer that is not Kafka's",
        f"correct bootstrap.servers: another program listens there; or {_LISTENER}",
    )


def _code(error: KafkaError) -> int:
    """Return what it is of; what TLS said is told as a connection that was cut, too.

    An alert comes behind the handshake (TLS 1.3), and a handshake that failed may.
    """
    cut = error.code() == _CUT and _OPENSSL in error.str()
    return _TLS if cut else error.code()


class ConnectionErrors:
    """One client's trouble, until it is over. `hear` is an error_cb."""

    def __init__(
        self,
        look: CertificateProbe,
        say: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        """`say` is called when something was heard, from any thread."""
        self._look = look
        self._say = say
        self._clock = clock
        self._heard: dict[int, tuple[Outage, float]] = {}  # by code; and when
        self._told: set[int] = set()
        self._looking = False  # at a certificate

    def hear(self, error: KafkaError) -> None:
        """Note an error; a certificate is checked in another thread."""
        address, code = _ADDRESS.match(error.str()), _code(error)
        if code != _TLS or _UNVERIFIED not in error.str() or address is None:
            self._keep(code, outage(error))
        elif not self._looking:
            self._looking = True
            runtime.start_thread(self._look_at, "certificate", error, address)

    def _look_at(self, error: KafkaError, address: re.Match[str]) -> None:
        found = self._look.at(address[1], int(address[2])) or outage(error)
        self._looking = False
        self._keep(_code(error), found)

    def _keep(self, code: int, found: Outage) -> None:
        self._heard[code] = found, self._clock()
        self._say()

    def __bool__(self) -> bool:
        """Return whether any error came since the last outage ended."""
        return bool(self._heard) or self._looking

    @property
    def all_down(self) -> bool:
        """Return whether no broker is left."""
        return _ALL_DOWN in self._heard

    @property
    def outage(self) -> Outage | None:
        """Most telling recent cause; None if there was none."""
        heard, now = dict(self._heard), self._clock()
        fresh = [code for code, (_, at) in heard.items() if now - at < _STALE_S]
        code = min(fresh or heard, key=_telling, default=None)
        return None if code is None else heard[code][0]

    def log(self, event: str, **fields: object) -> None:
        """Log each new cause; `event` is for the first of an outage."""
        for code in sorted(dict(self._heard).keys() - self._told, key=_telling):
            first = not self._told
            self._told.add(code)
            if code == _ALL_DOWN and not first:
                continue  # that is no cause of its own
            found = self._heard[code][0]
            words = event if first else "Kafka says another reason"
            _log.warning(words, **fields, **{ERROR: found.why, HINT: found.hint})

    def end(self) -> None:
        """Forget all causes: brokers answer."""
        self._heard = {}
        self._told = set()


def _telling(code: int) -> int:
    if code in TELLING:
        return TELLING.index(code)
    return len(TELLING) + (code == _ALL_DOWN)
