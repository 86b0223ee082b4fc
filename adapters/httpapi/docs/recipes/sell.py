import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid
from decimal import Decimal


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
    for attempt in range(10):
        wait = 0.0
        try:
            with urllib.request.urlopen(request, timeout=15) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429, 500, 502, 503, 504):
                raise RuntimeError(f"rejected: {error.read().decode()}") from error
            wait = float(error.headers.get("Retry-After") or 0)
        except (OSError, http.client.HTTPException, ValueError):
            pass  # no whole answer: the sale may have taken place
        time.sleep(wait + random.uniform(0, 0.1 * 2**attempt))
    raise TimeoutError(f"outcome not known: send the sale again with CallerId {caller_id}")


# Store the CallerId with your order before the first attempt.
answer = sell(str(uuid.uuid4()), Decimal(sys.argv[1] if len(sys.argv) > 1 else "12.5"))
print("State", answer["Data"]["State"])
for error in answer.get("errors", []):
    print(error["code"], error["pointer"])
