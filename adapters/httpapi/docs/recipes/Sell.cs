using System.Net.Http;
using System.Net.Http.Json;
using System.Text.Json;

var client = new HttpClient { BaseAddress = new Uri(Environment.GetEnvironmentVariable("BANK_URL")!), Timeout = TimeSpan.FromSeconds(15) };
client.DefaultRequestHeaders.Add("Ocp-Apim-Subscription-Key", Environment.GetEnvironmentVariable("BANK_KEY"));

// Store the CallerId with your order before the first attempt.
var answer = await Sell(Guid.NewGuid().ToString(), decimal.Parse(args.FirstOrDefault("12.5"), System.Globalization.CultureInfo.InvariantCulture));
Console.WriteLine($"State {answer.GetProperty("Data").GetProperty("State").GetInt32()}");

// Sends one sale until its outcome is certain, and returns the answer.
async Task<JsonElement> Sell(string callerId, decimal units)
{
    var order = new
    {
        Header = new { CallerId = callerId },
        Parameters = new[] { new {
            CustomerNo = 1001L, TransactionType = 2, FundAmount = units, // a decimal is written with every digit
            DestinationAccount = new { BranchCode = 1L, CustomerNo = 1001L, AccountSuffix = 1L, CurrencyCode = "TRY" },
            FundToProcess = new { IMKBCode = "AFA", HolderCorporationName = "Demo Portfoy", PriceID = 1L },
        } },
    };
    var end = DateTimeOffset.UtcNow + TimeSpan.FromMinutes(2); // by then the outcome must be certain
    var sent = false;
    for (var attempt = 0; ; attempt++)
    {
        var wait = TimeSpan.Zero;
        string cause;
        try
        {
            using var response = await client.PostAsJsonAsync("/BankingApiV01/BuyFundFromCustomer", order,
                new JsonSerializerOptions()); // the names as they are, not in camel case
            sent = true;
            var text = await response.Content.ReadAsStringAsync();
            if (response.IsSuccessStatusCode) return JsonDocument.Parse(text).RootElement;
            var status = (int)response.StatusCode;
            cause = $"{status} {text}";
            if (status == 400 && text.Contains("\"State\":8")) throw new ArgumentException($"invalid, without effect: {cause}");
            if (status is not (408 or 429 or 500 or 502 or 503 or 504))
                throw new InvalidOperationException($"outcome not known, correct this and send CallerId {callerId} again: {cause}");
            var after = response.Headers.RetryAfter; // seconds or a date
            wait = after?.Delta ?? (after?.Date is { } date && date > DateTimeOffset.UtcNow ? date - DateTimeOffset.UtcNow : TimeSpan.Zero);
        }
        catch (Exception e) when (e is HttpRequestException or TaskCanceledException or JsonException)
        {
            // No whole answer: the sale may have taken place, unless nothing was sent.
            sent |= e is not HttpRequestException { HttpRequestError: HttpRequestError.ConnectionError
                or HttpRequestError.NameResolutionError or HttpRequestError.SecureConnectionError };
            cause = e.Message;
        }
        wait += TimeSpan.FromMilliseconds(Random.Shared.Next(Math.Min(10_000, 100 << Math.Min(attempt, 10))));
        if (DateTimeOffset.UtcNow + wait > end)
            throw new TimeoutException((sent ? $"outcome not known, send CallerId {callerId} again: " : "not sent: ") + cause);
        await Task.Delay(wait);
    }
}
