import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Outcomes {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final Pattern NEXT = Pattern.compile("\"Next\":\"([^\"]*)\"");

    /** Returns the next page. Waits 20 seconds for an outcome, and repeats a request that fails. */
    static String page(String after) throws InterruptedException {
        HttpRequest request = HttpRequest.newBuilder()
            .uri(URI.create(System.getenv("BANK_URL") + "/outcomes?wait=20s&after=" + URLEncoder.encode(after, StandardCharsets.UTF_8)))
            .header("Ocp-Apim-Subscription-Key", System.getenv("BANK_KEY"))
            .timeout(Duration.ofSeconds(40))
            .build();
        for (int attempt = 0; ; attempt++) {
            try {
                var response = CLIENT.send(request, BodyHandlers.ofString());
                if (response.statusCode() == 200) {
                    return response.body();
                }
                if (response.statusCode() != 429 && response.statusCode() < 500) {
                    throw new IllegalStateException(response.statusCode() + " " + response.body());
                }
            } catch (IOException e) {
                // No whole answer: reading again changes nothing.
            }
            Thread.sleep(ThreadLocalRandom.current().nextLong(1 + Math.min(10_000, 100L << Math.min(attempt, 10))));
        }
    }

    public static void main(String[] args) throws Exception {
        Path kept = Path.of(args.length > 0 ? args[0] : "outcomes.cursor");
        do {
            String page = page(Files.exists(kept) ? Files.readString(kept) : "");
            System.out.println(page); // use your JSON library: {"Outcomes":[{"CallerId":…,"State":…}],"Next":…}
            // Keep the cursor after the page is processed: after a stop the same page comes again. The file is replaced,
            // so that a full disk leaves the cursor as it is.
            Matcher next = NEXT.matcher(page);
            if (next.find()) {
                Path written = Files.writeString(Path.of(kept + ".new"), next.group(1));
                Files.move(written, kept, StandardCopyOption.REPLACE_EXISTING);
            }
        } while (System.getenv("ONCE") == null);
    }
}
