// node sell.mjs UNITS [CALLER_ID]: the CallerId is that of an earlier attempt.
import { randomUUID } from "node:crypto";

const patience = 120_000; // milliseconds in which the outcome must be certain
const notCarriedOut = [400, 401, 403, 404, 405, 413, 415, 422, 429];
const repeated = [200, 408, 429, 500, 502, 503, 504];
const notSent = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/;
const hopeless = /^ENOTFOUND$|CERT|ISSUER|LEAF_SIGNATURE/;

/** Sends one sale until its outcome is certain, and returns the answer. */
async function sell(callerId, units, mayHaveWorked) {
  const sale = {
    CustomerNo: 1001,
    TransactionType: 2,
    FundAmount: "UNITS",
    DestinationAccount: { BranchCode: 1, CustomerNo: 1001, AccountSuffix: 1, CurrencyCode: "TRY" },
    FundToProcess: { IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: 1 },
  };
  const body = JSON.stringify({ Header: { CallerId: callerId }, Parameters: [sale] }).replace('"UNITS"', units); // every digit
  const end = Date.now() + patience;
  for (let attempt = 0; ; attempt++) {
    let wait = 0;
    let repeat;
    let cause;
    try {
      const response = await fetch(process.env.BANK_URL + "/BankingApiV01/BuyFundFromCustomer", {
        method: "POST",
        headers: { "Content-Type": "application/json", "Ocp-Apim-Subscription-Key": process.env.BANK_KEY },
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(15_000),
      });
      const text = await response.text();
      const answer = parse(text);
      const state = answer?.Data?.State;
      if ((response.status === 200 && [1, 2, 8].includes(state)) || (response.status === 400 && state === 8)) return answer;
      cause = `${response.status} ${text.slice(0, 500)}`;
      mayHaveWorked ||= !notCarriedOut.includes(response.status);
      repeat = repeated.includes(response.status);
      wait = retryAfter(response.headers.get("Retry-After"));
    } catch (error) {
      cause = error.cause ?? error;
      repeat = !hopeless.test(cause.code);
      mayHaveWorked ||= repeat && !notSent.test(cause.code);
    }
    wait += Math.random() * Math.min(10_000, 100 * 2 ** attempt);
    if (!repeat || Date.now() + wait > end) {
      const fate = mayHaveWorked ? `outcome not known: send CallerId ${callerId} again` : "not carried out";
      throw Object.assign(new Error(`${fate}: ${cause}`), { mayHaveWorked });
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** Returns the answer, or undefined if it is not JSON. */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the milliseconds that the header asks for. It has seconds or a date. */
function retryAfter(text) {
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return wait > 0 ? wait : 0;
}

const [units = "12.5", earlier] = process.argv.slice(2);
const callerId = earlier ?? randomUUID(); // store it with your order before the first attempt
try {
  const answer = await sell(callerId, units, earlier !== undefined);
  console.log("State", answer.Data.State);
  for (const error of answer.errors ?? []) console.error(error.code, error.pointer, error.detail);
  process.exitCode = answer.Data.State === 8 ? 1 : 0;
} catch (error) {
  console.error(error.message);
  process.exitCode = error.mayHaveWorked ? 2 : 1;
}
