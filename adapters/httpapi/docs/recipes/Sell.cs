// dotnet run UNITS [CALLER_ID]: the CallerId is that of an earlier attempt.
using System.Globalization;
using System.Net.Http.Json;
using System.Text.Json;

var patience = TimeSpan.FromSeconds(120); // in which the outcome must be certain
int[] notCarriedOut = [400, 401, 403, 404, 405, 413, 415, 422, 429];
int[] repeated = [200, 408, 429, 500, 502, 503, 504];
var client = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false })
{
    BaseAddress = new Uri(Environment.GetEnvironmentVariable("BANK_URL") + "/"), // the slash keeps a path of the address
    Timeout = TimeSpan.FromSeconds(15),
};
client.DefaultRequestHeaders.Add("Ocp-Apim-Subscription-Key", Environment.GetEnvironmentVariable("BANK_KEY"));

var units = decimal.Parse(args.Length > 0 ? args[0] : "12.5", CultureInfo.InvariantCulture);
var callerId = args.Length > 1 ? args[1] : Guid.NewGuid().ToString(); // store it with your order before the first attempt
return await Sell(callerId, units, args.Length > 1);

// Sends one sale until its outcome is certain. Returns the status with which the program ends.
async Task<int> Sell(string callerId, decimal units, bool mayHaveWorked)
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
    var end = DateTimeOffset.UtcNow + patience;
    for (var attempt = 0; ; attempt++)
    {
        var wait = TimeSpan.Zero;
        bool repeat;
        string cause;
        try
        {
            using var response = await client.PostAsJsonAsync("BankingApiV01/BuyFundFromCustomer", order,
                new JsonSerializerOptions()); // the names as they are, not in camel case
            var status = (int)response.StatusCode;
            var text = await response.Content.ReadAsStringAsync();
            var state = StateOf(text);
            cause = $"{status} {text}";
            if (status == 200 && state is 1 or 2)
            {
                Console.WriteLine($"State {state}");
                return 0;
            }
            if (status is 200 or 400 && state == 8)
            {
                Console.WriteLine("State 8");
                Console.Error.WriteLine(cause);
                return 1;
            }
            mayHaveWorked |= !notCarriedOut.Contains(status);
            repeat = repeated.Contains(status);
            var after = response.Headers.RetryAfter; // seconds or a date
            wait = after?.Delta ?? (after?.Date is { } date && date > DateTimeOffset.UtcNow ? date - DateTimeOffset.UtcNow : TimeSpan.Zero);
        }
        catch (Exception e) when (e is HttpRequestException or TaskCanceledException)
        {
            var error = (e as HttpRequestException)?.HttpRequestError;
            cause = e.Message;
            repeat = error is not (HttpRequestError.NameResolutionError or HttpRequestError.SecureConnectionError);
            mayHaveWorked |= repeat && error is not HttpRequestError.ConnectionError;
        }
        wait += TimeSpan.FromMilliseconds(Random.Shared.Next(Math.Min(10_000, 100 << Math.Min(attempt, 10))));
        if (!repeat || DateTimeOffset.UtcNow + wait > end)
        {
            Console.Error.WriteLine((mayHaveWorked ? $"outcome not known: send CallerId {callerId} again: " : "not carried out: ") + cause);
            return mayHaveWorked ? 2 : 1;
        }
        await Task.Delay(wait);
    }
}

// Returns Data.State, or 0 if the answer has none.
static int StateOf(string text)
{
    try
    {
        var answer = JsonDocument.Parse(text).RootElement;
        return answer.ValueKind == JsonValueKind.Object && answer.TryGetProperty("Data", out var data)
            && data.ValueKind == JsonValueKind.Object && data.TryGetProperty("State", out var state)
            && state.ValueKind == JsonValueKind.Number && state.TryGetInt32(out var number) ? number : 0;
    }
    catch (JsonException)
    {
        return 0;
    }
}
