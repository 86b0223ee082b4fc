import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;

public class Sell {
    private static final Set<Integer> TRANSIENT = Set.of(408, 429, 500, 502, 503, 504);
    private static final HttpClient CLIENT = HttpClient.newHttpClient(); // one for all calls: it reuses connections

    /** Sends one sale until its outcome is certain, and returns the answer. */
    static String sell(String callerId, BigDecimal units) throws InterruptedException {
        String body = """
            {"Header": {"CallerId": "%s"}, "Parameters": [{
              "CustomerNo": 1001, "TransactionType": 2, "FundAmount": %s,
              "DestinationAccount": {"BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY"},
              "FundToProcess": {"IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1}
            }]}""".formatted(callerId, units.toPlainString()); // every digit
        HttpRequest request = HttpRequest.newBuilder()
            .uri(URI.create(System.getenv("BANK_URL") + "/BankingApiV01/BuyFundFromCustomer"))
            .header("Content-Type", "application/json")
            .header("Ocp-Apim-Subscription-Key", System.getenv("BANK_KEY"))
            .timeout(Duration.ofSeconds(15))
            .POST(BodyPublishers.ofString(body))
            .build();
        for (int attempt = 0; attempt < 10; attempt++) {
            long wait = 0;
            try {
                var response = CLIENT.send(request, BodyHandlers.ofString());
                if (response.statusCode() == 200) {
                    return response.body();
                }
                if (!TRANSIENT.contains(response.statusCode())) {
                    throw new IllegalStateException("rejected: " + response.body());
                }
                wait = 1000 * response.headers().firstValueAsLong("Retry-After").orElse(0);
            } catch (IOException e) {
                // No whole answer: the sale may have taken place.
            }
            Thread.sleep(wait + ThreadLocalRandom.current().nextLong(1, 100L << attempt));
        }
        throw new IllegalStateException("outcome not known: send the sale again with CallerId " + callerId);
    }

    public static void main(String[] args) throws InterruptedException {
        // Store the CallerId with your order before the first attempt.
        String answer = sell(UUID.randomUUID().toString(), new BigDecimal(args.length > 0 ? args[0] : "12.5"));
        System.out.println(answer); // read it with your JSON library: Data.State, errors[].code
    }
}
