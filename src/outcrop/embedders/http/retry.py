"""Which answers are worth asking again, how long to wait before that, and saying so while it lasts."""

from __future__ import annotations

import email.utils
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from outcrop.embedders.http.client import Broken, Reply, RequestGroup
from outcrop.embedders.http.connection import Unreachable
from outcrop.errors import EmbedderTimeout, EmbedderUnavailable

# Seconds before the second, third and fourth attempt.
PAUSES = (0.3, 1.0, 3.0)

BUSY = frozenset({429, 503})
FAILING = frozenset({408, 425, 500, 502, 504}) | BUSY

# A server that limits the rate has to be asked more often than one that fails.
BUSY_ATTEMPTS = 8

# Share by which pauses differ, so that batches sent at once do not come back at once.
SPREAD = 0.2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How much waiting an answer is worth.

    Attributes:
        attempts: How often to try what fails.
        pause: Longest single wait that a server may ask for, in seconds.
    """

    attempts: int
    pause: float


FOR_PASSAGES = RetryPolicy(attempts=len(PAUSES) + 1, pause=60.0)
# Somebody waits, and keywords answer at once.
FOR_QUESTIONS = RetryPolicy(attempts=2, pause=2.0)


def persist(
    send: Callable[[], Reply],
    patience: RetryPolicy,
    flight: RequestGroup,
    address: str,
    *,
    proven: bool,
    lasting: Callable[[Reply], bool],
) -> Reply:
    """Send until there is an answer that waiting would not change.

    Nothing that failed is silent: each attempt that will be repeated is logged at once.

    Args:
        send: Makes one request.
        patience: How much waiting it is worth.
        flight: Waits end when it is stopped.
        address: For the messages.
        proven: Whether the server ever answered in this session. One that never did is not waited for.
        lasting: Whether an answer with a status of failure is final all the same.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            reply = send()
        except (Broken, Unreachable, EmbedderTimeout) as error:
            if flight.stopped.is_set() or attempt >= _worth(error, patience, proven=proven):
                raise
            _wait(PAUSES[min(attempt, len(PAUSES)) - 1], error.what, flight)
            continue
        if reply.status not in FAILING or lasting(reply):
            return reply
        attempts = max(BUSY_ATTEMPTS, patience.attempts) if reply.status in BUSY and proven else patience.attempts
        if flight.stopped.is_set() or attempt >= attempts:
            return reply
        asked = _asked_pause(reply)
        if asked is not None and asked > patience.pause:
            raise EmbedderUnavailable(
                f"{address} is busy (status {reply.status}) and asks to wait {asked:.0f} s",
                "Try again then; what was done so far is kept.",
            )
        pause = asked if asked is not None else PAUSES[min(attempt, len(PAUSES)) - 1]
        _wait(pause, f"{address} answers with status {reply.status}", flight)


def _worth(error: EmbedderUnavailable, patience: RetryPolicy, *, proven: bool) -> int:
    """How often to try when there was no answer at all."""
    if not proven:
        return 2 if isinstance(error, Broken) else 1
    return min(2, patience.attempts) if isinstance(error, EmbedderTimeout) else patience.attempts


def _wait(seconds: float, what: str, flight: RequestGroup) -> None:
    log.warning("%s; trying again in %.1f s", what, seconds)
    flight.stopped.wait(seconds * (1 + SPREAD * random.random()))


def _asked_pause(reply: Reply) -> float | None:
    """Seconds that ``Retry-After`` asks for, as a number or as a date."""
    text = reply.headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        return max(0.0, float(text)) if float(text) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
