import { randomUUID } from "node:crypto";

type Answer = { Data: { State: number }; errors?: { pointer: string; code: string; detail: string }[] };

const patience = 120_000; // milliseconds in which the outcome must be certain
const notSent = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT", "DEPTH_ZERO_SELF_SIGNED_CERT", "CERT_HAS_EXPIRED"];

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
  const end = Date.now() + patience;
  let sent = false;
  for (let attempt = 0; ; attempt++) {
    let wait = 0;
    let cause: unknown;
    try {
      const response = await fetch(process.env.BANK_URL + "/BankingApiV01/BuyFundFromCustomer", {
        method: "POST",
        headers: { "Content-Type": "application/json", "Ocp-Apim-Subscription-Key": process.env.BANK_KEY ?? "" },
        body,
        signal: AbortSignal.timeout(15_000),
      });
      sent = true;
      const text = await response.text();
      if (response.ok) return JSON.parse(text) as Answer;
      cause = `${response.status} ${text}`;
      if (response.status === 400 && text.includes('"State":8')) return Promise.reject(new Error(`invalid, without effect: ${cause}`));
      if (![408, 429, 500, 502, 503, 504].includes(response.status))
        return Promise.reject(new Error(`outcome not known, correct this and send CallerId ${callerId} again: ${cause}`));
      wait = retryAfter(response.headers.get("Retry-After"));
    } catch (error) {
      // No whole answer: the sale may have taken place, unless nothing was sent.
      cause = (error as { cause?: unknown }).cause ?? error;
      sent ||= !notSent.includes((cause as { code?: string }).code ?? "");
    }
    wait += Math.random() * Math.min(10_000, 100 * 2 ** attempt);
    if (Date.now() + wait > end)
      throw new Error(`${sent ? `outcome not known, send CallerId ${callerId} again` : "not sent"}: ${cause}`);
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** Returns the milliseconds that the header asks for, which may also be a date. */
function retryAfter(text: string | null): number {
  if (text === null) return 0;
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(wait) ? 0 : Math.max(0, wait);
}

// Store the CallerId with your order before the first attempt.
const answer = await sell(randomUUID(), process.argv[2] ?? "12.5");
console.log("State", answer.Data.State);
for (const error of answer.errors ?? []) console.log(error.code, error.pointer, error.detail);
