from __future__ import annotations

import http.client
import json
import os
import pathlib
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

KEPT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "outcomes.cursor")


def page(after: str) -> dict:
    """Returns the next page. Waits 20 seconds for an outcome, and repeats a request that fails."""
    query = urllib.parse.urlencode({"after": after, "wait": "20s"})
    request = urllib.request.Request(
        os.environ["BANK_URL"] + "/outcomes?" + query,
        headers={"Ocp-Apim-Subscription-Key": os.environ["BANK_KEY"]},
    )
    attempt = 0
    while True:
        try:
            with urllib.request.urlopen(request, timeout=40) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code == 410:  # the bank's book has lost the outcome: begin again, and skip what you know by its OperationId
                KEPT.unlink(missing_ok=True)
                return page("")
            if error.code != 429 and error.code < 500:
                raise RuntimeError(f"{error.code} {error.read().decode(errors='replace')}") from error
        except (OSError, http.client.HTTPException, ValueError):
            pass  # no whole answer: reading again changes nothing
        time.sleep(random.uniform(0, min(10, 0.1 * 2**attempt)))
        attempt = min(attempt + 1, 10)


while True:
    got = page(KEPT.read_text() if KEPT.exists() else "")
    for outcome in got["Outcomes"]:
        codes = ",".join(error["code"] for error in outcome.get("Errors", []))
        print(outcome["CallerId"], outcome["State"], codes, "reversed" if outcome.get("Reversed") else "", flush=True)
    # Keep the cursor after the page is processed: after a stop the same page comes again. The file is replaced, so that a
    # full disk leaves the cursor as it is.
    written = KEPT.with_name(KEPT.name + ".new")
    written.write_text(got["Next"])
    written.replace(KEPT)
    if os.environ.get("ONCE"):
        break
    if not got["Outcomes"]:
        time.sleep(1)  # with very many callers, the service does not hold the request
