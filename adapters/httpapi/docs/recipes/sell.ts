import { randomUUID } from "node:crypto";

type Answer = { Data: { State: number }; errors?: { pointer: string; code: string; detail: string }[] };

/** Sends one sale until its outcome is certain, and returns the answer. */
async function sell(callerId: string, units: string): Promise<Answer> {
  if (!/^\d{1,13}(\.\d{1,6})?$/.test(units)) throw new Error("units must look like 12.5");
  const sale = {
    CustomerNo: 1001,
    TransactionType: 2,
    FundAmount: "UNITS",
    DestinationAccount: { BranchCode: 1, CustomerNo: 1001, AccountSuffix: 1, CurrencyCode: "TRY" },
    FundToProcess: { IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: 1 },
  };
  const body = JSON.stringify({ Header: { CallerId: callerId }, Parameters: [sale] }).replace('"UNITS"', units); // every digit
  for (let attempt = 0; attempt < 10; attempt++) {
    let wait = 0;
    try {
      const response = await fetch(process.env.BANK_URL + "/BankingApiV01/BuyFundFromCustomer", {
        method: "POST",
        headers: { "Content-Type": "application/json", "Ocp-Apim-Subscription-Key": process.env.BANK_KEY ?? "" },
        body,
        signal: AbortSignal.timeout(15_000),
      });
      const text = await response.text();
      if (response.ok) return JSON.parse(text) as Answer;
      if (![408, 429, 500, 502, 503, 504].includes(response.status)) return Promise.reject(new Error(`rejected: ${text}`));
      wait = Number(response.headers.get("Retry-After") ?? 0) * 1000;
    } catch {
      // No whole answer: the sale may have taken place.
    }
    await new Promise((done) => setTimeout(done, wait + Math.random() * 100 * 2 ** attempt));
  }
  throw new Error(`outcome not known: send the sale again with CallerId ${callerId}`);
}

// Store the CallerId with your order before the first attempt.
const answer = await sell(randomUUID(), process.argv[2] ?? "12.5");
console.log("State", answer.Data.State);
for (const error of answer.errors ?? []) console.log(error.code, error.pointer);
