"""What a schema cannot say of the service, for schemathesis: two of its checks with the exceptions that hold."""

import re

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

# Why a request that matches the document may still be invalid: members that depend on each other, names that are
# looked up, the requirements of a skill's own contract.
MEANINGS = [
    re.compile(pattern)
    for pattern in (
        r"is given twice|has different values",
        r"invalid cursor",
        r"a skill id, name or location is required",
        r"can only be attached",
        r"a word of the request has \d+ characters",
        r"`options\.files` refers to files",
        # JSON has one kind of number, and a whole one is written without a fraction here.
        r"is [\d.e+]+; expected an integer",
        # Limits in bytes, where a document counts characters.
        r"has \d+ (bytes|clauses); the maximum|signals with \d+ bytes that no step waits for",
        # PostgreSQL stores no NUL characters, so they are rejected before they reach a store.
        r"a NUL character is not allowed",
        # How the content is written is said by another member.
        r"`content` is not Base64",
        r"is not a file name; use a name without folders",
        # What a contract says of its inputs.
        r"invalid inputs for",
        # Labels and names of views are on one line.
        r"the label .* has the value|is not a valid label name|at most \d+ labels|the name of a view has",
        r"has both `expect` and `not`",
        r"a filter has at most \d+ terms|a value in a filter has at most \d+|the filter of a view is empty",
        # Results and words of a request together.
        r"have too many breakdown rows",
        # Names of lint rules are looked up.
        r"lint rule `.*` not found",
        # Sent instead of an object whose text of 2 MiB matches a pattern: schemathesis cannot generate it.
        r"the body is a number; expected an object",
        # The language of filters.
        r"unknown filter key|unknown state|is not a duration|is not a number|unclosed quote|has no value: write",
    )
]


def means(answer):
    """Whether a refusal is one for what the request means."""
    error = answer.get("error", {})
    if error.get("code") in {"attach_invalid", "path_escape"}:
        return True
    return any(pattern.search(error.get("message", "")) for pattern in MEANINGS)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Waits for news no longer than it takes to see that it waits."""
    wait = (case.query or {}).get("wait_ms")
    if str(wait).isdecimal() and 200 < int(wait) <= 60_000:
        case.query["wait_ms"] = 200


@schemathesis.check
def what_fits_is_taken(ctx, response, case):
    """A request that fits the document is refused as malformed only for what it means."""
    if response.status_code == 400 and means(response.json()):
        return None
    # A run that waits for a person, and a decision that does not name what it decides.
    if response.status_code == 428:
        return None
    return positive_data_acceptance(ctx, response, case)


@schemathesis.check
def what_does_not_fit_is_refused(ctx, response, case):
    """A request that does not match is rejected; an unknown header is ignored (RFC 9110, 5.1)."""
    if any("unknown-property" in name for name in case.headers or {}):
        return None
    # A run that waits for no decision accepts none, whatever the request names.
    if response.status_code == 409 and case.operation.path.endswith(("/approve", "/deny")):
        return None
    # A request that is too large is refused before its members are looked at.
    if response.status_code in {413, 431}:
        return None
    return negative_data_rejection(ctx, response, case)
