import java.io.IOException;
import java.math.BigDecimal;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.channels.UnresolvedAddressException;
import java.security.cert.CertificateException;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** java Sell.java UNITS [CALLER_ID]: the CallerId is that of an earlier attempt. */
public class Sell {
    private static final Duration PATIENCE = Duration.ofSeconds(120); // in which the outcome must be certain
    private static final Set<Integer> NOT_CARRIED_OUT = Set.of(400, 401, 403, 404, 405, 413, 415, 422, 429);
    private static final Set<Integer> REPEATED = Set.of(200, 408, 429, 500, 502, 503, 504);
    private static final HttpClient CLIENT = HttpClient.newHttpClient(); // one for all calls: it follows no redirects
    // Use your JSON library instead.
    private static final Pattern ANSWER = Pattern.compile("\\s*\\{.*\"Data\"\\s*:\\s*\\{\\s*\"State\"\\s*:\\s*([128])\\s*[,}].*\\}\\s*", Pattern.DOTALL);

    /** Sends one sale until its outcome is certain. Returns the status with which the program ends. */
    static int sell(String callerId, BigDecimal units, boolean mayHaveWorked) throws InterruptedException {
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
        for (int attempt = 0; ; attempt++) {
            long wait = 0;
            boolean repeat;
            String cause;
            try {
                var response = CLIENT.send(request, BodyHandlers.ofString());
                int status = response.statusCode();
                cause = status + " " + response.body();
                Matcher answer = ANSWER.matcher(response.body());
                int state = answer.matches() ? Integer.parseInt(answer.group(1)) : 0;
                if (status == 200 && (state == 1 || state == 2)) {
                    System.out.println("State " + state);
                    return 0;
                }
                if ((status == 200 || status == 400) && state == 8) {
                    System.out.println("State 8");
                    System.err.println(cause);
                    return 1;
                }
                mayHaveWorked |= !NOT_CARRIED_OUT.contains(status);
                repeat = REPEATED.contains(status);
                wait = retryAfter(response.headers().firstValue("Retry-After").orElse(""));
            } catch (IOException e) {
                cause = causes(e);
                repeat = !isCausedBy(e, CertificateException.class) && !isCausedBy(e, UnresolvedAddressException.class);
                mayHaveWorked |= repeat && !(e instanceof ConnectException || e instanceof HttpConnectTimeoutException);
            }
            wait += ThreadLocalRandom.current().nextLong(1, Math.min(10_000, 100L << Math.min(attempt, 10)));
            if (!repeat || System.nanoTime() + wait * 1_000_000 - end > 0) {
                System.err.println((mayHaveWorked ? "outcome not known: send CallerId " + callerId + " again: " : "not carried out: ") + cause);
                return mayHaveWorked ? 2 : 1;
            }
            Thread.sleep(wait);
        }
    }

    static boolean isCausedBy(Throwable error, Class<? extends Throwable> kind) {
        return error != null && (kind.isInstance(error) || isCausedBy(error.getCause(), kind));
    }

    /** Returns an error and what caused it: for an unknown host only the last cause says something. */
    static String causes(Throwable error) {
        return error.getCause() == null ? error.toString() : error + ": " + causes(error.getCause());
    }

    /** Returns the milliseconds that the header asks for. It has seconds or a date. */
    static long retryAfter(String text) {
        if (text.matches("[0-9]{1,9}")) {
            return 1000 * Long.parseLong(text);
        }
        try {
            return Math.max(0, ChronoUnit.MILLIS.between(ZonedDateTime.now(), ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME)));
        } catch (DateTimeParseException e) {
            return 0;
        }
    }

    public static void main(String[] args) throws InterruptedException {
        BigDecimal units = new BigDecimal(args.length > 0 ? args[0] : "12.5");
        boolean resumed = args.length > 1;
        String callerId = resumed ? args[1] : UUID.randomUUID().toString(); // store it with your order before the first attempt
        System.exit(sell(callerId, units, resumed));
    }
}
