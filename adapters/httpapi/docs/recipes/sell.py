# python3 sell.py UNITS [CALLER_ID]: the CallerId is that of an earlier attempt.
from __future__ import annotations

import email.utils
import http.client
import json
import os
import random
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid

PATIENCE = 120  # seconds in which the outcome must be certain
NOT_CARRIED_OUT = (400, 401, 403, 404, 405, 413, 415, 422, 429)
REPEATED = (200, 408, 429, 500, 502, 503, 504)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # a redirect is an answer that is not known


def sell(caller_id: str, units: str, may_have_worked: bool) -> dict:
    """Sends one sale until its outcome is certain, and returns the answer."""
    sale = {
        "CustomerNo": 1001,
        "TransactionType": 2,
        "FundAmount": "UNITS",
        "DestinationAccount": {"BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY"},
        "FundToProcess": {"IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1},
    }
    body = json.dumps({"Header": {"CallerId": caller_id}, "Parameters": [sale]}).replace('"UNITS"', units)  # every digit
    request = urllib.request.Request(
        os.environ["BANK_URL"] + "/BankingApiV01/BuyFundFromCustomer",
        data=body.encode(),
        headers={"Content-Type": "application/json", "Ocp-Apim-Subscription-Key": os.environ["BANK_KEY"]},
    )
    bank = urllib.request.build_opener(NoRedirects)
    end, attempt = time.monotonic() + PATIENCE, 0
    while True:
        wait = 0.0
        try:
            try:
                response = bank.open(request, timeout=15)
            except urllib.error.HTTPError as error:  # every status that is not 2xx
                response = error
            text = response.read().decode(errors="replace")
            answer = parse(text)
            state = state_of(answer)
            if (response.status == 200 and state in (1, 2, 8)) or (response.status == 400 and state == 8):
                return answer
            cause = f"{response.status} {text[:500]}"
            may_have_worked = may_have_worked or response.status not in NOT_CARRIED_OUT
            repeat = response.status in REPEATED
            wait = retry_after(response.headers.get("Retry-After"))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            cause = repr(reason)
            unknown_host = isinstance(reason, socket.gaierror) and reason.errno != socket.EAI_AGAIN
            repeat = not unknown_host and not isinstance(reason, ssl.SSLCertVerificationError)
            not_sent = isinstance(reason, (ConnectionRefusedError, socket.gaierror))
            may_have_worked = may_have_worked or (repeat and not not_sent)
        wait += random.uniform(0, min(10, 0.1 * 2**attempt))
        attempt += 1
        if not repeat or time.monotonic() + wait > end:
            print(f"outcome not known: send CallerId {caller_id} again" if may_have_worked else "not carried out", cause, sep=": ", file=sys.stderr)
            sys.exit(2 if may_have_worked else 1)
        time.sleep(wait)


def parse(text: str) -> object:
    """Returns the answer, or None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def state_of(answer: object) -> int | None:
    data = answer.get("Data") if isinstance(answer, dict) else None
    state = data.get("State") if isinstance(data, dict) else None
    return state if type(state) is int else None


def retry_after(text: str | None) -> float:
    """Returns the seconds that the header asks for. It has seconds or a date."""
    if text is not None and text.isdecimal():
        return float(text)
    then = email.utils.parsedate_tz(text or "")
    return max(0.0, email.utils.mktime_tz(then) - time.time()) if then else 0.0


units = sys.argv[1] if len(sys.argv) > 1 else "12.5"
earlier = sys.argv[2] if len(sys.argv) > 2 else None
caller_id = earlier or str(uuid.uuid4())  # store it with your order before the first attempt
answer = sell(caller_id, units, earlier is not None)
print("State", answer["Data"]["State"])
for error in answer.get("errors", []):
    print(error["code"], error["pointer"], error["detail"], file=sys.stderr)
sys.exit(1 if answer["Data"]["State"] == 8 else 0)
