package trail_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	trailadapter "bankingapi/adapters/trail"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// bank is a log with batches of 1, 2, 3 and more leaves.
type bank struct {
	notary      *trailadapter.Notary
	key         string
	hashes      []proof.Hash
	batches     []proof.Batch
	contents    [][][]byte
	checkpoints []string
}

func (b *bank) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		found[i] = b.hashes[at]
	}
	return found, nil
}

// stored reads hashes as a storage does.
func (b *bank) stored(indexes []int64) ([]proof.Hash, error) {
	found := make([]proof.Hash, len(indexes))
	for i, at := range indexes {
		found[i] = b.hashes[at]
	}
	return found, nil
}

func newBank(t testing.TB, batches int) *bank {
	t.Helper()
	signing, _, err := trailadapter.GenerateKeys("bank.example")
	require.NoError(t, err)
	return newBankWith(t, signing+"\n", batches)
}

func newBankWith(t testing.TB, signing string, batches int) *bank {
	t.Helper()
	notary, err := trailadapter.NewNotary(signing)
	require.NoError(t, err)
	b := &bank{notary: notary, key: notary.VerifyingKey()}
	var state application.State
	for i := range batches {
		batch := proof.Batch{ID: operation.ID{1, byte(i)}}
		var contents [][]byte
		for k := range i + 1 {
			act := &audit.Act{ID: operation.ID{2, byte(i), byte(k)}, Details: strconv.Itoa(k)}
			l := proof.OfAct(act.ID, act, nil, nil)
			batch.Entries = append(batch.Entries, l.Entry())
			contents = append(contents, l.Leaf.Content())
		}
		added, err := notary.Append(state, [][]byte{batch.Record()}, b.stored)
		require.NoError(t, err)
		require.EqualValues(t, len(b.hashes), added.First)
		checkpoint := added.Checkpoint
		state = application.State{Size: int64(i) + 1, Checkpoint: checkpoint}
		b.hashes = append(b.hashes, added.Hashes...)
		b.batches, b.contents, b.checkpoints = append(b.batches, batch), append(b.contents, contents), append(b.checkpoints, checkpoint)
	}
	return b
}

func (b *bank) prove(t testing.TB, position, index int) *trailadapter.Proof {
	t.Helper()
	last := len(b.checkpoints)
	file, err := b.notary.Prove(b.leaf(position, index), application.State{Size: int64(last), Checkpoint: b.checkpoints[last-1]}, b)
	require.NoError(t, err)
	p, err := trailadapter.ParseProof(file)
	require.NoError(t, err)
	return p
}

func (b *bank) leaf(position, index int) *application.Leaf {
	return &application.Leaf{Content: b.contents[position][index], Batch: b.batches[position], Index: index, BatchIndex: int64(position)}
}

// A key with another name would replace that of a book, and nothing could read it again.
func TestAKeyThatIsMadeCanBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bank.example/log", "m\u00fc\u015fteri", "a\u00a0b", "a\u2003b", "a\u0085b", "a\vb", "a b", "a+b", "a\xff", "a\x01", "a\nb", ""} {
		signing, verifying, err := trailadapter.GenerateKeys(name)
		if err != nil {
			require.ErrorContains(t, err, "only printable characters", "%q", name)
			continue
		}
		notary, err := trailadapter.NewNotary(signing)
		require.NoError(t, err, "%q", name)
		require.Equal(t, verifying, notary.VerifyingKey())
	}
}

func TestEveryLeafIsProved(t *testing.T) {
	t.Parallel()
	b := newBank(t, 9)
	for position, batch := range b.batches {
		for index, entry := range batch.Entries {
			leaf, checkpoint, err := b.prove(t, position, index).Check(b.key)
			require.NoError(t, err)
			require.Equal(t, entry.ID, leaf.ID)
			require.Equal(t, "act", leaf.Kind)
			require.Equal(t, int64(9), checkpoint.Size)
			receipt, err := b.notary.Receipt(b.leaf(position, index))
			require.NoError(t, err)
			_, err = receipt.CheckReceipt(b.key)
			require.NoError(t, err)
			_, _, err = receipt.Check(b.key)
			require.Error(t, err, "a receipt is not in the log yet")
		}
	}
}

func TestAProofWithAnyByteChangedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t, 5)
	receipt, err := b.notary.Receipt(b.leaf(4, 2))
	require.NoError(t, err)
	for _, p := range []*trailadapter.Proof{b.prove(t, 4, 2), b.prove(t, 0, 0), receipt} {
		file, err := p.Marshal()
		require.NoError(t, err)
		for i := range file {
			for _, change := range []byte{1, 2, 32, 128} {
				forged := append([]byte(nil), file...)
				forged[i] ^= change
				require.False(t, holds(forged, b.key), "byte %d of %s", i, forged)
			}
		}
		for i := range len(file) - 1 { // without its line end it is whole
			require.False(t, holds(file[:i], b.key))
		}
	}
}

func holds(file []byte, key string) bool {
	p, err := trailadapter.ParseProof(file)
	if err != nil {
		return false
	}
	if p.Position == -1 {
		_, err = p.CheckReceipt(key)
	} else {
		_, _, err = p.Check(key)
	}
	return err == nil
}

func TestALogThatDoesNotGrowIsRefused(t *testing.T) {
	t.Parallel()
	b, fork := newBank(t, 9), newBank(t, 9)
	open := func(signed, key string) trailadapter.Checkpoint {
		c, err := trailadapter.OpenCheckpoint(signed, key)
		require.NoError(t, err)
		return c
	}
	newest := open(b.checkpoints[8], b.key)
	for _, signed := range b.checkpoints {
		require.NoError(t, trailadapter.CheckExtends(open(signed, b.key), newest, b))
	}
	require.ErrorContains(t, trailadapter.CheckExtends(newest, open(b.checkpoints[3], b.key), b), "shorter")
	// A fork has other batches at the beginning.
	other := open(fork.checkpoints[3], fork.key)
	require.NoError(t, trailadapter.CheckExtends(other, newest, b), "equal batches are equal logs")
	other.Root[0] ^= 1
	require.ErrorContains(t, trailadapter.CheckExtends(other, newest, b), "changed")
	other.Origin = "other.example"
	require.ErrorContains(t, trailadapter.CheckExtends(other, newest, b), "two logs")
	_, err := trailadapter.OpenCheckpoint(fork.checkpoints[3], b.key)
	require.ErrorContains(t, err, "not of this key")
}

// Two services may have one file, and a book may have had another key before:
// each log is compared with its own checkpoints only.
func TestLogsShareAFileOfCheckpoints(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trail.checkpoints")
	own, other := newBank(t, 9), newBank(t, 3)
	file, others := trailadapter.NewCheckpoints(path, own.key), trailadapter.NewCheckpoints(path, other.key)
	newest := func(want string) {
		t.Helper()
		got, _, err := file.Newest()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	state := func(b *bank, size int) application.State {
		return application.State{Size: int64(size), Checkpoint: b.checkpoints[size-1]}
	}
	newest("")
	require.NoError(t, others.Append(other.checkpoints[0]))
	newest("")
	require.NoError(t, file.Extends(application.State{}, own.stored), "a log begins")
	require.NoError(t, file.Append(own.checkpoints[4]))
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write(strings.Repeat(other.checkpoints[2]+"\n", 1000)) // more than a block
	newest(own.checkpoints[4])
	require.NoError(t, file.Extends(state(own, 9), own.stored))
	require.ErrorContains(t, file.Extends(state(own, 3), own.stored), "shorter")
	require.ErrorContains(t, file.Extends(application.State{}, own.stored), "shorter")
	require.NoError(t, others.Extends(state(other, 3), other.stored))
	require.ErrorContains(t, others.Extends(state(other, 2), other.stored), "shorter")

	// A crash has cut a line. The next checkpoint begins in it and is lost, those
	// before and after it are not.
	write(own.checkpoints[5][:30])
	newest(own.checkpoints[4])
	require.NoError(t, file.Append(own.checkpoints[6]))
	newest(own.checkpoints[4])
	require.NoError(t, file.Append(own.checkpoints[7]))
	newest(own.checkpoints[7])
}

// refusal is a leaf of a refused sale of 1.5 units whose caller expected 12.50 TRY.
func (b *bank) refusal(t testing.TB) []byte {
	t.Helper()
	lira, _ := money.ParseCurrency("TRY")
	terms := fund.Terms{Units: 1_500_000, ControlTotal: 1250, Account: fund.AccountKey{Currency: lira}}
	refused := proof.Stored{
		Envelope: operation.Envelope{ID: operation.ID{3}}, Operation: operation.BuyFundFromCustomer, State: operation.Failed,
		Sales: []fund.SaleEntry{{Terms: terms, State: operation.Failed}},
	}
	l := proof.Leaves(proof.NewKeys(nil), &refused)[0]
	batch := proof.Batch{ID: operation.ID{4}, Entries: []proof.Entry{l.Entry()}}
	p, err := b.notary.Receipt(&application.Leaf{Content: l.Leaf.Content(), Batch: batch})
	require.NoError(t, err)
	file, err := p.Marshal()
	require.NoError(t, err)
	return file
}

// People read what a refused sale asked for as they read a sale.
func TestARefusedSaleIsReadable(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1)
	facts, err := trailadapter.CheckFile(b.refusal(t), b.key)
	require.NoError(t, err)
	for _, fact := range []string{`FundAmount: "1.5"`, `Amount: "12.50"`, `State: "failed"`} {
		require.Contains(t, facts, "Sale."+fact)
	}
}

// The checker in Python agrees with ours.
func TestTheOtherChecker(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: no python3 on this machine; run: apt-get install python3")
	}
	b := newBank(t, 6)
	check := func(file []byte, key string) (string, error) {
		path := filepath.Join(t.TempDir(), "proof.json")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		out, err := exec.Command(python, "check.py", path, key).CombinedOutput()
		return string(out), err
	}
	receipt, err := b.notary.Receipt(b.leaf(5, 4))
	require.NoError(t, err)
	for _, p := range []*trailadapter.Proof{b.prove(t, 5, 4), b.prove(t, 0, 0), b.prove(t, 2, 1), receipt} {
		file, err := p.Marshal()
		require.NoError(t, err)
		out, err := check(file, b.key)
		require.NoError(t, err, out)
		require.Contains(t, out, `leaf: "act"`)
		forged := *p
		forged.Leaf = append([]byte(nil), p.Leaf...)
		forged.Leaf[len(forged.Leaf)-3] ^= 1
		file, err = forged.Marshal()
		require.NoError(t, err)
		out, err = check(file, b.key)
		require.Error(t, err)
		require.Contains(t, out, "does not hold")
		require.False(t, strings.Contains(out, "Traceback"), out)
	}
	file, err := b.prove(t, 5, 4).Marshal()
	require.NoError(t, err)
	_, err = check(file, newBank(t, 1).key)
	require.Error(t, err)
	out, err := check(b.refusal(t), b.key)
	require.NoError(t, err, out)
	require.Contains(t, out, "Sale.FundAmount: \"1.5\"\n")
	require.Contains(t, out, "Sale.Amount: \"1250\" minor units of \"TRY\"\n")

	b.compareSpellings(t, python)
}

// compareSpellings hands all spellings to check.py in one process: to start it takes the most time.
func (b *bank) compareSpellings(t *testing.T, python string) {
	t.Helper()
	const program = `
import runpy, sys
key, *files = sys.argv[1:]
for file in files:
    sys.argv = ["check.py", file, key]
    try:
        runpy.run_path("check.py", run_name="__main__")
        print("result: holds")
    except SystemExit as end:
        print("result:", end)
`
	files := b.spellings(t)
	names := slices.Sorted(maps.Keys(files))
	folder := t.TempDir()
	arguments := []string{"-c", program, b.key}
	for i, name := range names {
		path := filepath.Join(folder, strconv.Itoa(i))
		require.NoError(t, os.WriteFile(path, []byte(files[name].file), 0o600))
		arguments = append(arguments, path)
	}
	out, err := exec.Command(python, arguments...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	results := regexp.MustCompile(`(?m)^result: (.*)$`).FindAllStringSubmatch(string(out), -1)
	require.Len(t, results, len(names))
	for i, name := range names {
		want := "the proof does not hold: "
		if files[name].refused == "" {
			want = "holds"
		}
		require.True(t, strings.HasPrefix(results[i][1], want), "%s: %s", name, results[i][1])
	}
}

// spelling is a file, and what the refusal of it says, or nothing if it holds.
type spelling struct{ file, refused string }

// spellings are files with a proof or a receipt as editors and other programs leave them, and files
// that are not exactly a proof.
func (b *bank) spellings(t testing.TB) map[string]spelling {
	t.Helper()
	text := func(p *trailadapter.Proof) string {
		file, err := p.Marshal()
		require.NoError(t, err)
		return strings.TrimSuffix(string(file), "\n")
	}
	receipt, err := b.notary.Receipt(b.leaf(5, 4))
	require.NoError(t, err)
	file, first, signed := text(b.prove(t, 5, 4)), text(b.prove(t, 0, 0)), text(receipt)
	changed := func(file, old, replacement string) string {
		other := regexp.MustCompile(old).ReplaceAllString(file, replacement)
		require.NotEqual(t, file, other, old)
		return other
	}
	indented := jsontext.Value(file)
	require.NoError(t, indented.Indent())
	spaced := jsontext.Value(file)
	require.NoError(t, spaced.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)))
	files := map[string]spelling{
		"as it was printed":        {file + "\n", ""},
		"without a line end":       {file, ""},
		"the line end of Windows":  {file + "\r\n", ""},
		"blank lines":              {"\n" + file + "\n \t\n", ""},
		"spaces":                   {string(spaced), ""},
		"many lines":               {string(indented), ""},
		"many lines of Windows":    {strings.ReplaceAll(string(indented), "\n", "\r\n"), ""},
		"another order":            {changed(file, `^\{("format":"[^"]*"),(.*)\}$`, "{$2,$1}"), ""},
		"escapes of json.dumps":    {changed(file, "\u2014", `\u2014`), ""},
		"escapes of other writers": {changed(changed(file, "/", `\/`), `"index"`, `"\u0069ndex"`), ""},
		"two in one line":          {file + " " + first + signed, ""},
		"zero with a sign":         {changed(first, `"index":0`, `"index":-0`), ""},
		"a receipt":                {strings.ReplaceAll(signed, `,"`, ` , "`), ""},

		"an empty file":               {"", "the file is empty"},
		"only a line end":             {"\n", "the file is empty"},
		"a member more":               {changed(file, `^\{`, `{"more":1,`), `no proof has the member "more"`},
		"another case":                {changed(file, `"index"`, `"Index"`), `no proof has the member "Index"`},
		"a member twice":              {changed(file, `^\{`, `{"index":4,`), `the member "index" is there twice`},
		"twice with an escape":        {changed(file, `^\{`, `{"\u0069ndex":4,`), `the member "index" is there twice`},
		"true is no number":           {changed(file, `"index":\d+`, `"index":true`), `the member "index" has another type or form`},
		"a text is no number":         {changed(file, `"index":(\d+)`, `"index":"$1"`), `the member "index" has another type or form`},
		"a fraction":                  {changed(file, `"index":(\d+)`, `"index":$1.0`), `the member "index" has another type or form`},
		"an exponent":                 {changed(file, `"index":(\d+)`, `"index":${1}e0`), `the member "index" has another type or form`},
		"a great number":              {changed(file, `"index":(\d+)`, `"index":99999999999999999999`), `the member "index" has another type or form`},
		"not a number":                {changed(file, `"index":(\d+)`, `"index":NaN`), "it is not JSON at byte"},
		"an object":                   {changed(file, `"leaf":"[^"]*"`, `"leaf":{}`), `the member "leaf" has another type or form`},
		"a hash that is a number":     {changed(file, `"path":\["[^"]*"`, `"path":[5`), `the member "path/0" has another type or form`},
		"a short hash":                {changed(file, `"path":\["[^"]*"`, `"path":["AA=="`), `the member "path/0" has another type or form`},
		"base64 without its end":      {changed(file, `("record":"[^"=]*)="`, `$1"`), `the member "record" has another type or form`},
		"base64 with a line end":      {changed(file, `"leaf":"`, `"leaf":"\n`), `the member "leaf" has another type or form`},
		"base64 of another form":      {changed(file, `("record":"[^"=]*)k="`, `${1}l="`), `the member "record" has another type or form`},
		"another format":              {changed(file, "proof 1", "proof 2"), `its format is "bankingapi proof 2", and this program knows "bankingapi proof 1"`},
		"a list":                      {"[]\n", "it is not an object"},
		"one proof and more":          {file + "{}\n", `the member "checkpoint" is missing`},
		"one proof and a word":        {file + "more", "it is not JSON at byte"},
		"a part":                      {file[:len(file)-9], "it is not JSON at byte"},
		"another encoding":            {changed(file, "bank.example", "b\xe4nk.example"), "it is not JSON at byte"},
		"half of a character":         {changed(file, "bank.example", `b\ud800nk.example`), "it is not JSON at byte"},
		"a mark before the file":      {"\ufeff" + file, "it is not JSON at byte"},
		"a space that JSON has not":   {file + "\u00a0", "it is not JSON at byte"},
		"a receipt with a path":       {changed(signed, `"logPath":\[\]`, `"logPath":["`+strings.Repeat("A", 43)+`="]`), "a receipt has no logPath"},
		"a receipt with a word":       {changed(signed, `"logPath":\[\]`, `"logPath":["no hash"]`), `the member "logPath/0" has another type or form`},
		"a receipt with another sign": {changed(signed, `"position":-1`, `"position":-2`), "the signature is of another receipt"},
		"a receipt as a proof":        {changed(signed, `"position":-1`, `"position":0`), "not a checkpoint"},
	}
	var members map[string]jsontext.Value
	require.NoError(t, json.Unmarshal([]byte(file), &members))
	for name, value := range members {
		delete(members, name)
		without, err := json.Marshal(members)
		require.NoError(t, err)
		files["without "+name] = spelling{string(without), `the member "` + name + `" is missing`}
		members[name] = jsontext.Value("null")
		null, err := json.Marshal(members)
		require.NoError(t, err)
		files["null for "+name] = spelling{string(null), `the member "` + name + `" has another type or form`}
		members[name] = value
	}
	return files
}

// A proof is not false because an editor has written it in another way.
func TestAProofInAnySpelling(t *testing.T) {
	t.Parallel()
	b := newBank(t, 6)
	for name, c := range b.spellings(t) {
		facts, err := trailadapter.CheckFile([]byte(c.file), b.key)
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused, name)
			continue
		}
		require.NoError(t, err, name)
		require.NotEmpty(t, facts, name)
	}
}
