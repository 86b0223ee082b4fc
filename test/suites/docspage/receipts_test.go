package docspage_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAReceiptIsCheckedWithoutOurProgram runs the Python program of the page about receipts. It
// accepts the receipt of a sale and refuses every receipt that was changed.
func TestAReceiptIsCheckedWithoutOurProgram(t *testing.T) {
	t.Parallel()
	requireTool(t, "python3")
	if exec.Command("python3", "-c", "import cryptography").Run() != nil {
		t.Skip("SKIPPED: no python3-cryptography on this machine; run: apt-get install python3-cryptography")
	}
	folder := t.TempDir()
	program := recipe(t, "receipt.py", filepath.Join(folder, "receipt.py"), nil)
	box := openSandbox(t)
	// Several sales of one request have one leaf; the path of a receipt is longer if its commit
	// had more operations.
	sold, _ := box.ask(t, http.MethodPost, "/BankingApiV01/BuyFundFromCustomer",
		`{"Header":{"CallerId":"with a receipt"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":12.5,`+
			`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},`+
			`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}]}`)
	receipt := sold.Get("Receipt")
	require.NotEmpty(t, receipt)
	var answer struct{ Key string }
	box.askFor(t, "/_sandbox/receipt-key", &answer)

	check := func(receipt, key string) (string, error) {
		file := filepath.Join(folder, "receipt.txt")
		require.NoError(t, os.WriteFile(file, []byte("Receipt: "+receipt+"\r\n"), 0o600))
		out, err := exec.Command("python3", program, file, key).CombinedOutput()
		return string(out), err
	}
	out, err := check(receipt, answer.Key)
	require.NoError(t, err, out)
	for _, signed := range []string{sold.Get("Operation-Id"), "with a receipt", "12500000", "AFA"} {
		require.Contains(t, out, signed)
	}

	proof, err := base64.StdEncoding.DecodeString(receipt)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(proof, &members))
	for _, member := range []string{"leaf", "record", "checkpoint"} {
		changed := map[string]any{}
		for name, value := range members {
			changed[name] = value
		}
		text, ok := members[member].(string)
		require.True(t, ok)
		at := len(text) / 2
		other := "A"
		if text[at] == 'A' {
			other = "B"
		}
		changed[member] = text[:at] + other + text[at+1:]
		forged, err := json.Marshal(changed)
		require.NoError(t, err)
		out, err := check(base64.StdEncoding.EncodeToString(forged), answer.Key)
		require.Error(t, err, "%s was changed:\n%s", member, out)
	}
	openSandbox(t).askFor(t, "/_sandbox/receipt-key", &answer)
	out, err = check(receipt, answer.Key)
	require.Error(t, err, "the key of another bank:\n%s", out)
}
