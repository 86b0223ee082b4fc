import { readFile, rename, writeFile } from "node:fs/promises";

type Outcome = { CallerId: string; State: number; At: string; Errors?: { code: string }[]; Reversed?: boolean };
type Page = { Outcomes: Outcome[]; Next: string };

/** Returns the next page. Waits 20 seconds for an outcome, and repeats a request that fails. */
async function page(after: string): Promise<Page> {
  const query = new URLSearchParams({ after, wait: "20s" });
  for (let attempt = 0; ; attempt++) {
    try {
      const response = await fetch(`${process.env.BANK_URL}/outcomes?${query}`, {
        headers: { "Ocp-Apim-Subscription-Key": process.env.BANK_KEY ?? "" },
        signal: AbortSignal.timeout(40_000),
      });
      const text = await response.text();
      if (response.ok) return JSON.parse(text) as Page;
      if (response.status !== 429 && response.status < 500) return Promise.reject(new Error(`${response.status} ${text}`));
    } catch {
      // No whole answer: reading again changes nothing.
    }
    await new Promise((done) => setTimeout(done, Math.random() * Math.min(10_000, 100 * 2 ** attempt)));
  }
}

const kept = process.argv[2] ?? "outcomes.cursor";
do {
  const got = await page(await readFile(kept, "utf8").catch(() => ""));
  for (const o of got.Outcomes)
    console.log(o.CallerId, o.State, (o.Errors ?? []).map((error) => error.code).join(), o.Reversed ? "reversed" : "");
  // Keep the cursor after the page is processed: after a stop the same page comes again. The file is replaced, so that a
  // full disk leaves the cursor as it is.
  await writeFile(`${kept}.new`, got.Next);
  await rename(`${kept}.new`, kept);
} while (!process.env.ONCE);
