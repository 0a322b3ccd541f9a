"""What can go wrong between us and a provider, and what each fault says about: the item, the moment or the settings.

The body decides as much as the status: gateways answer 200 with an error in it, and a 400 may be a content filter
(about the item), a prompt that is too long (the item) or a parameter that the model does not take (the settings).
What is done about a fault belongs in `retry.py`, when to give up in `circuit_breaker.py`.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Literal

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.destinations import PrivateAddress
from ragbench_dagster.evaluation.judge.retry_after import wait_of
from ragbench_dagster.records import Status
from ragbench_dagster.traffic.scrubbing.redact import redact

# rate, server, page, connect, timeout: of the moment, tried again. refused, truncated, item: of this item.
# key, quota, address, model, parameter, dns, tls: of the settings, and end the run.
Kind = Literal[
    "rate", "server", "page", "connect", "timeout", "refused", "truncated", "item",
    "key", "quota", "address", "model", "parameter", "dns", "tls",
]  # fmt: skip
SETTINGS: frozenset[str] = frozenset(("key", "quota", "address", "model", "parameter", "dns", "tls"))


_NOBODY = frozenset((errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH))


class JudgeUnavailable(UserError):
    """No call can be made here: the key's variable is not set. What the ledger holds is still there."""


class Stopped(Exception):
    """The run was asked to stop while this item waited; it was not judged."""


class ItemFault(Exception):
    """One item could not be judged, and it is known why.

    Attributes:
        status: what becomes of the item.
        reason: one short line, without text under test.
    """

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status: Status = status
        self.reason = reason


class Trouble(Exception):
    """One attempt failed.

    Attributes:
        kind: see `Kind`.
        reason: one short line: status, code and the provider's message, redacted.
        wait_s: how long the provider asks us to wait, seconds.
        parameter: the request parameter that is not taken, for kind `parameter`.
    """

    def __init__(self, kind: Kind, reason: str, wait_s: float | None = None, parameter: str = "") -> None:
        super().__init__(reason)
        self.kind: Kind = kind
        self.reason = reason
        self.wait_s = wait_s
        self.parameter = parameter


_FILTER_CODES = frozenset(
    ("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked",
     "data_inspection_failed", "prompt_blocked", "content_blocked", "input_moderation", "sensitive", "1301")
)  # fmt: skip
_FILTER = re.compile(
    r"content[ _]?(management|policy|polic|filter|moderation)|responsible ai|safety (system|filter|setting|policy)"
    r"|(was|were|been|is) (flagged|filtered|moderated)|prohibited content|inappropriate content|violat\w+ .{0,40}polic"
    r"|jailbreak|requires moderation",
    re.IGNORECASE,
)
_LENGTH_CODES = frozenset(
    ("context_length_exceeded", "string_above_max_length", "exceed_context_size_error", "request_too_large")
)
_LENGTH = re.compile(
    r"context[ _-](length|window|size)|maximum (context|prompt|input|number of tokens)|too many tokens"
    r"|prompt is too long|input is too long|max_model_len|\bn_ctx\b|reduce the length|longer than the maximum",
    re.IGNORECASE,
)
_QUOTA_CODES = frozenset(
    ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance",
     "insufficient_credits", "insufficient_funds", "account_deactivated", "payment_required", "credit_exhausted")
)  # fmt: skip
_QUOTA = re.compile(
    r"plan and billing|(insufficient|out of|run out of|not enough|no) (quota|credit|balance|funds)"
    r"|billing (hard )?limit|credit balance|exceeded your (current|monthly) (quota|usage|spend)"
    r"|payment required|spend(ing)? limit",
    re.IGNORECASE,
)
_KEY = re.compile(r"(api[ _-]?key|authenticat|credential|access token)", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,120}(not (found|exist|available|supported)|does not exist|unknown|invalid|unrecognized|no such)"
    r"|(unknown|invalid|no such|not a valid|unsupported) model|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETERS = (
    "max_completion_tokens", "max_tokens", "temperature", "seed", "top_logprobs", "logprobs", "top_p", "top_k",
    "response_format", "reasoning_effort", "presence_penalty", "frequency_penalty", "stop", "logit_bias", "n",
)  # fmt: skip
_REFUSED_PARAMETER = re.compile(
    r"unsupported|not supported|does not support|unknown|unrecogni[sz]ed|not permitted|not allowed|extra inputs"
    r"|invalid (parameter|value|argument)|cannot be used|unexpected (keyword|field|argument)"
    r"|must be|deprecated|only the default",
    re.IGNORECASE,
)
_PARAMETER_CODES = frozenset(
    ("unsupported_parameter", "unsupported_value", "unknown_parameter", "invalid_parameter", "invalid_value",
     "invalid_type", "missing_required_parameter", "integer_below_min_value", "integer_above_max_value")
)  # fmt: skip


def of_answer(status: int, headers: Mapping[str, str], body: Any, now: float, prompt: str = "") -> Trouble:
    """The trouble that an error answer tells of.

    Args:
        status: HTTP status, or the code inside the body of a 200.
        headers: of the answer.
        body: decoded JSON, or text.
        now: seconds since 1970.
        prompt: what was sent, so that an echo of it is taken out of the reason.
    """
    error = error_of(body)
    code, message, parameter = _code(error), _text(error), str(error.get("param") or "")
    reason = f"{status} {redact(' '.join(filter(None, (code, message))), prompt)}".strip()
    wait = wait_of(headers, body, now)
    if _filtered(error, code, message, status):
        return Trouble("refused", f"the provider's content filter: {reason}")
    if code in _LENGTH_CODES or status == 413 or (400 <= status < 600 and status != 429 and _LENGTH.search(message)):
        return Trouble("truncated", f"the prompt is too long for the model: {reason}")
    if status == 402 or code in _QUOTA_CODES or (status in (403, 429) and wait is None and _QUOTA.search(message)):
        return Trouble("quota", reason)
    if status == 429 or code in ("rate_limit_exceeded", "rate_limit_error", "too_many_requests"):
        return Trouble("rate", reason, wait)
    if status == 403 and _is_page(body):  # a firewall or a portal in between; a provider says it in JSON
        return Trouble("page", f"{status} with a web page")
    if status in (401, 403, 407) or (status == 400 and _KEY.search(message) and "valid" in message.lower()):
        return Trouble("key", reason)
    if status in (404, 400, 422) and (code == "model_not_found" or parameter == "model" or _NO_MODEL.search(message)):
        return Trouble("model", reason)
    if status in (400, 422):
        named = _named_parameter(parameter, code, message)
        return Trouble("parameter", reason, parameter=named) if named else Trouble("item", reason)
    if status in (408, 409, 425) or (status >= 500 and status not in (501, 505)):
        return Trouble("server", reason, wait)
    return Trouble("page", f"{status} with a web page") if _is_page(body) else Trouble("address", reason)


def _is_page(body: Any) -> bool:
    """A page for people, of a login, a portal or maintenance: a wrong address, or an hour in which nobody is let in."""
    return isinstance(body, str) and body.lstrip("\ufeff \t\r\n").startswith("<")


def of_success(body: Any, headers: Mapping[str, str], now: float, prompt: str = "") -> Trouble | None:
    """The trouble inside an HTTP 200: an error object, no choices, or something that is no JSON at all."""
    if not isinstance(body, Mapping):
        if _is_page(body):
            return Trouble("page", "200 with a web page")
        return Trouble("server", "200 without a JSON object", wait_of(headers, body, now))
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    inner = first.get("error") if isinstance(first, Mapping) else None
    error = body.get("error") or inner
    if error:
        whole = {"error": error} if inner and not body.get("error") else body
        trouble = of_answer(_inner_status(error_of(whole)), headers, whole, now, prompt)
        trouble.reason = f"200 with an error inside: {trouble.reason}"
        return trouble
    if not isinstance(first, Mapping) or not isinstance(first.get("message"), Mapping):
        if isinstance(first, Mapping) and finish_of(first.get("finish_reason")) == "content_filter":
            return Trouble("refused", "the provider's content filter stopped the reply")
        return Trouble("server", "200 without choices", wait_of(headers, body, now))
    return None


def finish_of(reason: Any) -> str:
    """Why a reply ended, in OpenAI's words whatever the provider's."""
    word = str(reason or "").lower().replace("-", "_")
    if word in ("safety", "prohibited_content", "blocklist", "spii", "recitation", "content_filtered", "refusal"):
        return "content_filter"
    return "length" if word in ("max_tokens", "model_length", "max_output_tokens") else word


def of_exception(fault: BaseException) -> Trouble:
    """The trouble that a transport's exception tells of; the chain of causes names it."""
    chain: list[BaseException] = []
    link: BaseException | None = fault
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    names = " ".join(type(f).__name__ for f in chain)
    if any(isinstance(f, PrivateAddress) for f in chain):
        return Trouble("address", "the name leads to a private network; set judge.private: true if that is meant")
    # The transport wraps a refused connection in a time-out: the cause counts, not what it was wrapped in.
    if any(isinstance(f, ssl.SSLError) for f in chain) or "Certificate" in names:
        return Trouble("tls", "the TLS connection failed")
    if any(isinstance(f, socket.gaierror) for f in chain) or "DNS" in names:
        return Trouble("dns", "the host name is not known")
    if any(isinstance(f, OSError) and f.errno in _NOBODY for f in chain) or "ConnectionTimeout" in names:
        return Trouble("connect", "no connection")
    if any(isinstance(f, TimeoutError) for f in chain) or "Timeout" in names:
        return Trouble("timeout", "no answer in time")
    if "InvalidUrl" in names or "InvalidURL" in names or "UnsupportedProtocol" in names:
        return Trouble("address", "not an http(s) address")
    return Trouble("server", f"the connection broke ({type(chain[-1]).__name__})")


def error_of(body: Any) -> Mapping[str, Any]:
    """The error object of a body, whatever wraps it."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        for name in ("error", "detail", "errors"):
            inner = body.get(name)
            if isinstance(inner, list) and inner:
                inner = inner[0]
            if isinstance(inner, Mapping):
                return inner
            if isinstance(inner, str):
                return {**body, "message": inner}
        return body
    return {"message": body} if isinstance(body, str) else {}


def _code(error: Mapping[str, Any]) -> str:
    for name in ("code", "type", "status"):
        value = error.get(name)
        if isinstance(value, str) and value and not value.isdigit():
            return value.lower()
    return ""


def _text(error: Mapping[str, Any]) -> str:
    texts = [error.get("message"), error.get("msg"), error.get("detail")]
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping):
        texts += [metadata.get("raw"), *(r for r in metadata.get("reasons") or () if isinstance(r, str))]
    return " ".join(text for text in texts if isinstance(text, str))


def _inner_status(error: Mapping[str, Any]) -> int:
    """The status that an error inside a 200 stands for; what names none is the gateway's own fault (502)."""
    for name in ("code", "status", "status_code", "http_status"):
        value = error.get(name)
        if isinstance(value, int | str) and str(value).isdigit() and 400 <= int(value) < 600:
            return int(value)
    words = f"{_code(error)} {_text(error)}".lower()
    if re.search(r"rate.?limit|too many (requests|calls)|resource_exhausted|overloaded", words):
        return 429
    if "invalid_request" in words or "content_filter" in words:
        return 400
    return 502


def _filtered(error: Mapping[str, Any], code: str, message: str, status: int) -> bool:
    inner = error.get("innererror")
    inner_code = str(inner.get("code", "")).lower() if isinstance(inner, Mapping) else ""
    if code in _FILTER_CODES or inner_code in _FILTER_CODES or "content_filter_result" in error:
        return True
    metadata = error.get("metadata")
    if status == 403 and isinstance(metadata, Mapping) and ("flagged_input" in metadata or "reasons" in metadata):
        return True
    return status in (400, 403, 422, 451) and bool(_FILTER.search(message))


def _named_parameter(parameter: str, code: str, message: str) -> str:
    """The request parameter that a 400 complains of; "" where it is about the item."""
    name = parameter.split(".")[0].split("[")[0]
    if name in ("messages", "prompt", "input"):
        return ""
    if name:
        return name
    if code in _PARAMETER_CODES or _REFUSED_PARAMETER.search(message):
        for known in _PARAMETERS:
            quoted = rf"[`'\"]{known}[`'\"]" if len(known) < 5 else rf"\b{known}\b"
            if re.search(quoted, message):
                return known
    return ""
