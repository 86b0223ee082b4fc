import java.io.IOException;
import java.math.BigDecimal;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import javax.net.ssl.SSLHandshakeException;

public class Sell {
    private static final Set<Integer> TRANSIENT = Set.of(408, 429, 500, 502, 503, 504);
    private static final Duration PATIENCE = Duration.ofMinutes(2); // in which the outcome must be certain
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
        long end = System.nanoTime() + PATIENCE.toNanos();
        boolean sent = false;
        for (int attempt = 0; ; attempt++) {
            long wait = 0;
            String cause;
            try {
                var response = CLIENT.send(request, BodyHandlers.ofString());
                sent = true;
                if (response.statusCode() == 200) {
                    return response.body();
                }
                cause = response.statusCode() + " " + response.body();
                if (response.statusCode() == 400 && response.body().contains("\"State\":8")) {
                    throw new IllegalArgumentException("invalid, without effect: " + cause);
                }
                if (!TRANSIENT.contains(response.statusCode())) {
                    throw new IllegalStateException("outcome not known, correct this and send CallerId " + callerId + " again: " + cause);
                }
                wait = retryAfter(response.headers().firstValue("Retry-After").orElse("0"));
            } catch (IOException e) {
                // No whole answer: the sale may have taken place, unless nothing was sent.
                sent |= !(e instanceof ConnectException || e instanceof SSLHandshakeException);
                cause = e.toString();
            }
            wait += ThreadLocalRandom.current().nextLong(1, Math.min(10_000, 100L << Math.min(attempt, 10)));
            if (System.nanoTime() + wait * 1_000_000 - end > 0) {
                throw new IllegalStateException((sent ? "outcome not known, send CallerId " + callerId + " again: " : "not sent: ") + cause);
            }
            Thread.sleep(wait);
        }
    }

    /** Returns the milliseconds that the header asks for, which may also be a date. */
    static long retryAfter(String text) {
        try {
            return text.matches("[0-9]{1,9}") ? 1000 * Long.parseLong(text) : Math.max(0,
                ChronoUnit.MILLIS.between(ZonedDateTime.now(), ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME)));
        } catch (DateTimeParseException e) {
            return 0;
        }
    }

    public static void main(String[] args) throws InterruptedException {
        // Store the CallerId with your order before the first attempt.
        String answer = sell(UUID.randomUUID().toString(), new BigDecimal(args.length > 0 ? args[0] : "12.5"));
        System.out.println(answer); // read it with your JSON library: Data.State, errors[].code
    }
}
