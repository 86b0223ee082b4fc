import type { components } from "./bank.js";

type Schemas = components["schemas"];

async function post<Answer>(operation: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${process.env.BANK_URL}/BankingApiV01/${operation}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Ocp-Apim-Subscription-Key": process.env.BANK_KEY ?? "" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Answer;
}

const push: Schemas["AddPushNotificationResponseRequest"] = {
  Header: {},
  Parameters: [{ ExternalApplicationCode: "MOBILE", UserId: "user-1", PushId: "push-1", Platform: 73, SendStatus: 1 }],
};
console.log("push", (await post<Schemas["Answer"]>("AddPushNotificationResponse", push)).Data.State === 2);

function sale(callerId: string, price: number): Schemas["BuyFundFromCustomerRequest"] {
  return {
    Header: { CallerId: callerId },
    Parameters: [
      {
        CustomerNo: 1002,
        TransactionType: 2,
        FundAmount: 1234567.89,
        Amount: 1543209.86,
        DestinationAccount: { BranchCode: 1, CustomerNo: 1001, AccountSuffix: 1, CurrencyCode: "TRY" },
        FundToProcess: { IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: price },
      },
    ],
  };
}

const sold = await post<Schemas["Answer"]>("BuyFundFromCustomer", sale("generated-1", 1));
console.log("sale", sold.Data.State === 2);
const refused = await post<Schemas["Answer"]>("BuyFundFromCustomer", sale("generated-2", 99));
console.log("refused", refused.Data.State === 8, refused.errors?.[0]?.code, refused.errors?.[0]?.pointer);
const invalid = await post<Schemas["Problem"]>("BuyFundFromCustomer", sale("generated-3", 0));
console.log("invalid", invalid.Data?.State === 8, invalid.errors[0]?.code, invalid.type);
