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
from decimal import Decimal

PATIENCE = 120  # seconds in which the outcome must be certain
NOT_SENT = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)


def sell(caller_id: str, units: Decimal) -> dict:
    """Sends one sale until its outcome is certain, and returns the answer."""
    sale = {
        "CustomerNo": 1001,
        "TransactionType": 2,
        "FundAmount": "UNITS",
        "DestinationAccount": {"BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY"},
        "FundToProcess": {"IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1},
    }
    body = json.dumps({"Header": {"CallerId": caller_id}, "Parameters": [sale]})
    body = body.replace('"UNITS"', f"{units:f}")  # every digit, never through a float
    request = urllib.request.Request(
        os.environ["BANK_URL"] + "/BankingApiV01/BuyFundFromCustomer",
        data=body.encode(),
        headers={"Content-Type": "application/json", "Ocp-Apim-Subscription-Key": os.environ["BANK_KEY"]},
    )
    end, attempt, sent = time.monotonic() + PATIENCE, 0, False
    while True:
        wait = 0.0
        try:
            with urllib.request.urlopen(request, timeout=15) as response:
                sent = True
                return json.load(response)
        except urllib.error.HTTPError as error:
            sent, cause = True, f"{error.code} {error.read().decode(errors='replace')}"
            if error.code == 400 and '"State":8' in cause:
                raise ValueError(f"invalid, without effect: {cause}") from error
            if error.code not in (408, 429, 500, 502, 503, 504):
                raise RuntimeError(f"outcome not known, correct this and send CallerId {caller_id} again: {cause}") from error
            wait = retry_after(error.headers.get("Retry-After"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            # No whole answer: the sale may have taken place, unless nothing was sent.
            sent = sent or not isinstance(getattr(error, "reason", error), NOT_SENT)
            cause = repr(error)
        wait += random.uniform(0, min(10, 0.1 * 2**attempt))
        attempt += 1
        if time.monotonic() + wait > end:
            fate = f"outcome not known, send CallerId {caller_id} again" if sent else "not sent"
            raise TimeoutError(f"{fate}: {cause}")
        time.sleep(wait)


def retry_after(text: str | None) -> float:
    """Returns the seconds that the header asks for, which may also be a date."""
    try:
        return float(text or 0)
    except ValueError:
        then = email.utils.parsedate_tz(text)
        return max(0.0, email.utils.mktime_tz(then) - time.time()) if then else 0.0


# Store the CallerId with your order before the first attempt.
answer = sell(str(uuid.uuid4()), Decimal(sys.argv[1] if len(sys.argv) > 1 else "12.5"))
print("State", answer["Data"]["State"])
for error in answer.get("errors", []):
    print(error["code"], error["pointer"], error["detail"])
