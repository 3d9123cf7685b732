"""Which answers are worth another attempt, after how long a pause; each further attempt is logged."""

from __future__ import annotations

import contextlib
import email.utils
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from outcrop.embedders.http.client import HttpResponse
from outcrop.embedders.http.connection import Broken, RequestGroup, Unreachable
from outcrop.errors import EmbedderTimeout, EmbedderUnavailable

# Seconds before the second, third and fourth attempt.
PAUSES = (0.3, 1.0, 3.0)

BUSY = frozenset({429, 503})
FAILING = frozenset({408, 425, 500, 502, 504}) | BUSY

# A server that limits the rate needs more attempts than one that fails.
BUSY_ATTEMPTS = 8

# Share by which pauses differ, so that batches sent at once do not come back at once.
JITTER = 0.2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts at most, and the longest pause in seconds that a server may ask for."""

    attempts: int
    longest_pause: float


FOR_PASSAGES = RetryPolicy(attempts=len(PAUSES) + 1, longest_pause=60.0)
# Where another call does the waiting.
ONCE = RetryPolicy(attempts=1, longest_pause=60.0)
# A user waits, and keywords answer at once.
FOR_QUERIES = RetryPolicy(attempts=2, longest_pause=2.0)


def send_with_retries(
    send: Callable[[], HttpResponse],
    policy: RetryPolicy,
    group: RequestGroup,
    address: str,
    *,
    has_answered: bool,
    is_final: Callable[[HttpResponse], bool],
) -> HttpResponse:
    """Send until there is an answer that waiting would not change.

    ``has_answered`` says whether the server ever answered in this session: one that never did is not waited for.
    ``is_final`` says whether an answer with a status of failure is final all the same.
    """
    attempt = 0
    while True:
        attempt += 1
        pause = PAUSES[min(attempt, len(PAUSES)) - 1]
        try:
            response = send()
        except (Broken, Unreachable, EmbedderTimeout) as error:
            if group.stopped.is_set() or attempt >= _attempts_without_answer(error, policy, has_answered):
                raise
            reason = error.what
        else:
            if response.status not in FAILING or is_final(response):
                return response
            busy = response.status in BUSY and has_answered
            if group.stopped.is_set() or attempt >= (max(BUSY_ATTEMPTS, policy.attempts) if busy else policy.attempts):
                return response
            asked = _retry_after(response)
            if asked is not None and asked > policy.longest_pause:
                raise EmbedderUnavailable(
                    f"{address} is busy (status {response.status}) and asks to wait {asked:.0f} s",
                    "Try again then; what was done so far is kept.",
                )
            pause = pause if asked is None else asked
            reason = f"{address} answers with status {response.status}"
        log.warning("%s; trying again in %.1f s", reason, pause)
        group.stopped.wait(pause * (1 + JITTER * random.random()))


def _attempts_without_answer(error: EmbedderUnavailable, policy: RetryPolicy, has_answered: bool) -> int:
    if not has_answered:
        return 2 if isinstance(error, Broken) else 1
    return min(2, policy.attempts) if isinstance(error, EmbedderTimeout) else policy.attempts


def _retry_after(response: HttpResponse) -> float | None:
    """Seconds that ``Retry-After`` asks for, as a number or as a date."""
    text = response.headers.get("retry-after", "").strip()
    with contextlib.suppress(ValueError):
        return max(0.0, float(text)) if float(text) < float("inf") else None
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    return None
