using System.Net;
using System.Text.Json;

var kept = args.Length > 0 ? args[0] : "outcomes.cursor";
using var client = new HttpClient { Timeout = TimeSpan.FromSeconds(40) };
client.DefaultRequestHeaders.Add("Ocp-Apim-Subscription-Key", Environment.GetEnvironmentVariable("BANK_KEY"));
do
{
    var page = await Page(File.Exists(kept) ? File.ReadAllText(kept) : "");
    foreach (var o in page.GetProperty("Outcomes").EnumerateArray())
    {
        var codes = o.TryGetProperty("Errors", out var errors)
            ? string.Join(",", errors.EnumerateArray().Select(error => error.GetProperty("code").GetString())) : "";
        Console.WriteLine($"{o.GetProperty("CallerId")} {o.GetProperty("State")} {codes} {(o.TryGetProperty("Reversed", out _) ? "reversed" : "")}");
    }
    // Keep the cursor after the page is processed: after a stop the same page comes again. The file is replaced, so that a
    // full disk leaves the cursor as it is.
    File.WriteAllText(kept + ".new", page.GetProperty("Next").GetString());
    File.Move(kept + ".new", kept, true);
} while (Environment.GetEnvironmentVariable("ONCE") is null);

// Page returns the next page. It waits 20 seconds for an outcome, and repeats a request that fails.
async Task<JsonElement> Page(string after)
{
    var address = $"{Environment.GetEnvironmentVariable("BANK_URL")}/outcomes?wait=20s&after={Uri.EscapeDataString(after)}";
    for (var attempt = 0; ; attempt++)
    {
        try
        {
            using var response = await client.GetAsync(address);
            var text = await response.Content.ReadAsStringAsync();
            if (response.IsSuccessStatusCode) return JsonDocument.Parse(text).RootElement;
            if (response.StatusCode != HttpStatusCode.TooManyRequests && (int)response.StatusCode < 500)
                throw new InvalidOperationException($"{(int)response.StatusCode} {text}");
        }
        catch (Exception e) when (e is HttpRequestException or TaskCanceledException or JsonException)
        {
            // No whole answer: reading again changes nothing.
        }
        await Task.Delay(Random.Shared.Next((int)Math.Min(10_000, 100 * Math.Pow(2, attempt))));
    }
}
