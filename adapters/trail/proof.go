package trail

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	application "bankingapi/application/trail"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// ProofFormat is the first member of a proof.
const ProofFormat = "bankingapi proof 1"

// Proof proves that a leaf is in the log. It is complete: the verifying key is enough to check
// it, without the database. A Receipt is a Proof without the log: it signs only Record, because
// no checkpoint has the batch yet.
type Proof struct {
	Format string `json:"format"`
	// Leaf is the content of the leaf, in base64 like all binary members.
	Leaf []byte `json:"leaf"`
	// Index is the index of the leaf in its batch, Leaves the number of leaves in the batch.
	// Path leads from the leaf to the root of the batch.
	Index  int64        `json:"index"`
	Leaves int64        `json:"leaves"`
	Path   []proof.Hash `json:"path"`
	// Record is the batch in the log, and Position its position. LogPath leads from the batch
	// to the root of the checkpoint.
	Record   []byte       `json:"record"`
	Position int64        `json:"position"`
	LogPath  []proof.Hash `json:"logPath"`
	// Checkpoint is a signed note.
	Checkpoint string `json:"checkpoint"`
}

func newProof(l *application.Leaf) *Proof {
	return &Proof{
		Format: ProofFormat, Leaf: l.Content, Index: int64(l.Index), Leaves: int64(len(l.Batch.Entries)), Path: l.Batch.Path(l.Index),
		Record: l.Batch.Record(), Position: l.BatchIndex,
	}
}

// Marshal writes a proof as one line of JSON.
func (p *Proof) Marshal() ([]byte, error) {
	line, err := json.Marshal(p, json.Deterministic(true))
	return append(line, '\n'), err
}

var errNoProof = errors.New("not a proof of the trail")

// ParseProof reads a proof in any spelling of its JSON: an editor or another program may have changed
// the white space, the order of the members or the escapes. A proof has exactly the members of Proof,
// each once, with a value that Marshal would write. ParseProof does not check what they prove.
func ParseProof(file []byte) (*Proof, error) {
	given := jsontext.Value(bytes.Clone(file))
	err := given.Canonicalize(jsontext.CanonicalizeRawFloats(false)) // 1.0 stays a fraction, as in check.py
	if err != nil {
		return nil, explain(err)
	}
	p := new(Proof)
	err = json.Unmarshal(given, p, json.RejectUnknownMembers(true))
	if err != nil {
		return nil, explain(err)
	}
	err = p.compareMembers(given)
	if err != nil {
		return nil, err
	}
	if p.Format != ProofFormat {
		return nil, fmt.Errorf("%w: its format is %q, and this program knows %q", errNoProof, p.Format, ProofFormat)
	}
	return p, nil
}

// compareMembers returns an error if the members that were given are not those of the proof that was
// read from them. JSON reads null and a missing member as an empty value, and base64 has several forms.
func (p *Proof) compareMembers(given []byte) error {
	own, err := p.Marshal()
	if err != nil {
		return err
	}
	var wanted, found map[string]jsontext.Value
	err = errors.Join(json.Unmarshal(own, &wanted), json.Unmarshal(given, &found))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		value, ok := found[name]
		if !ok {
			return fmt.Errorf("%w: the member %q is missing", errNoProof, name)
		}
		if !bytes.Equal(value, wanted[name]) {
			return wrongForm(name)
		}
	}
	return nil
}

func wrongForm(name string) error {
	return fmt.Errorf("%w: the member %q has another type or form", errNoProof, name)
}

// explain says in plain words why JSON is not a proof.
func explain(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("%w: the member %q is there twice", errNoProof, syntax.JSONPointer.LastToken())
		}
		return fmt.Errorf("%w: it is not JSON at byte %d", errNoProof, syntax.ByteOffset)
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return fmt.Errorf("%w: %w", errNoProof, err)
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("%w: no proof has the member %q", errNoProof, semantic.JSONPointer.LastToken())
	case semantic.JSONPointer == "":
		return fmt.Errorf("%w: it is not an object", errNoProof)
	}
	return wrongForm(strings.TrimPrefix(string(semantic.JSONPointer), "/"))
}

// Check verifies a proof with the verifying key. It returns the content of the leaf and the
// checkpoint whose log has the leaf.
func (p *Proof) Check(verifyingKey string) (proof.Decoded, Checkpoint, error) {
	checkpoint, err := OpenCheckpoint(p.Checkpoint, verifyingKey)
	if err != nil {
		return proof.Decoded{}, checkpoint, err
	}
	leaf, err := p.checkBatch()
	if err != nil {
		return leaf, checkpoint, err
	}
	if p.Position < 0 || p.Position >= checkpoint.Size ||
		tlog.CheckRecord(p.LogPath, checkpoint.Size, checkpoint.Root, p.Position, tlog.RecordHash(p.Record)) != nil {
		return leaf, checkpoint, errors.New("the batch is not in the log of this checkpoint")
	}
	return leaf, checkpoint, nil
}

// checkBatch verifies that the leaf is in the batch of Record.
func (p *Proof) checkBatch() (proof.Decoded, error) {
	leaf, err := proof.Decode(p.Leaf)
	if err != nil {
		return leaf, err
	}
	root, leaves, err := proof.ParseRecord(p.Record)
	if err != nil {
		return leaf, err
	}
	if leaves != p.Leaves || p.Index < 0 || p.Index >= leaves ||
		tlog.CheckRecord(p.Path, leaves, root, p.Index, tlog.RecordHash(p.Leaf)) != nil {
		return leaf, errors.New("the leaf is not in its batch")
	}
	return leaf, nil
}

// CheckExtends verifies that the log of newer begins with the log of older. stored reads the
// stored hashes of newer.
func CheckExtends(older, newer Checkpoint, stored tlog.HashReader) error {
	switch {
	case older.Origin != newer.Origin:
		return fmt.Errorf("the checkpoints are of two logs: %q and %q", older.Origin, newer.Origin)
	case older.Size > newer.Size:
		return application.Flaw(fmt.Sprintf("the log has become shorter: %d batches, and %d before", newer.Size, older.Size))
	case older.Size == 0:
		return nil
	}
	path, err := tlog.ProveTree(newer.Size, older.Size, stored)
	if err != nil {
		return err
	}
	if tlog.CheckTree(path, newer.Size, newer.Root, older.Size, older.Root) != nil {
		return application.Flaw(fmt.Sprintf("the log has changed: its first %d batches are not those of the earlier checkpoint", older.Size))
	}
	return nil
}

// receiptText returns the text to sign for a receipt: a batch that no checkpoint has yet.
func receiptText(name string, record []byte) string {
	return name + " receipt\n" + hex.EncodeToString(record) + "\n"
}

// Receipt proves that a leaf is in a batch that the service has committed. If no later
// checkpoint has the batch, the receipt proves that the batch was left out.
func (n *Notary) Receipt(l *application.Leaf) (p *Proof, err error) {
	p = newProof(l)
	p.Position = -1
	p.Checkpoint, err = n.sign(receiptText(n.signer.Name(), p.Record))
	return p, err
}

// CheckReceipt verifies a receipt with the verifying key.
func (p *Proof) CheckReceipt(verifyingKey string) (proof.Decoded, error) {
	text, name, err := open(p.Checkpoint, verifyingKey)
	if err != nil {
		return proof.Decoded{}, err
	}
	if p.Position != -1 || text != receiptText(name, p.Record) {
		return proof.Decoded{}, errors.New("the signature is of another receipt")
	}
	if len(p.LogPath) > 0 {
		return proof.Decoded{}, errors.New("a receipt has no logPath")
	}
	return p.checkBatch()
}

// Prove returns the file of a proof that a leaf is in the log in this state.
func (n *Notary) Prove(l *application.Leaf, state application.State, hashes tlog.HashReader) ([]byte, error) {
	if l.BatchIndex < 0 || l.BatchIndex >= state.Size {
		return nil, errors.New("the leaf is not in a checkpoint yet: try again")
	}
	path, err := tlog.ProveRecord(state.Size, l.BatchIndex, hashes)
	if err != nil {
		return nil, err
	}
	p := newProof(l)
	p.Checkpoint = state.Checkpoint
	p.LogPath = path
	if _, _, err := p.Check(n.verifying); err != nil {
		return nil, fmt.Errorf("the log does not hold, run `bankingapi verify`: %w", err)
	}
	return p.Marshal()
}

// longestReceipt is the maximum length of a header Receipt in bytes. Some clients reject a
// response with more than 16 KiB of headers.
const longestReceipt = 12 << 10

// ReceiptHeader returns the receipt of a leaf in one line: the base64 of its file. It returns
// "" if the receipt is too long for a header. The command trail prove has no limit.
func (n *Notary) ReceiptHeader(l *application.Leaf) (string, error) {
	p, err := n.Receipt(l)
	if err != nil {
		return "", err
	}
	file, err := p.Marshal()
	header := base64.StdEncoding.EncodeToString(file)
	if err != nil || len(header) > longestReceipt {
		return "", err
	}
	return header, nil
}

// CheckFile verifies a receipt, or a file with proofs one after the other, with the verifying key. It
// returns the proved facts, one per line, and at the end a sentence that says what proves them.
func CheckFile(file []byte, verifyingKey string) (facts []string, err error) {
	header := strings.TrimSpace(string(file))
	if name, value, found := strings.Cut(header, ":"); found && strings.EqualFold(name, "Receipt") {
		header = strings.TrimSpace(value)
	}
	if decoded, err := base64.StdEncoding.Strict().DecodeString(header); err == nil {
		file = decoded // the header of a response
	}
	var verdicts []string
	proofs := jsontext.NewDecoder(bytes.NewReader(file))
	for {
		value, err := proofs.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, explain(err)
		}
		more, verdict, err := checkProof(value, verifyingKey)
		if err != nil {
			return nil, err
		}
		facts = append(facts, more...)
		if !slices.Contains(verdicts, verdict) {
			verdicts = append(verdicts, verdict)
		}
	}
	if len(facts) == 0 {
		return nil, fmt.Errorf("%w: the file is empty", errNoProof)
	}
	return append(facts, verdicts...), nil
}

func checkProof(file []byte, verifyingKey string) (facts []string, verdict string, err error) {
	p, err := ParseProof(file)
	if err != nil {
		return nil, "", err
	}
	var leaf proof.Decoded
	fact := "receipt: signed before a checkpoint; a later checkpoint must have it"
	if p.Position < 0 {
		leaf, err = p.CheckReceipt(verifyingKey)
		name, _, _ := strings.Cut(strings.TrimSpace(verifyingKey), "+")
		verdict = "The receipt holds: " + name + " signed it."
	} else {
		var c Checkpoint
		leaf, c, err = p.Check(verifyingKey)
		fact = fmt.Sprintf("log: %s, batch %d of %d", c.Origin, p.Position+1, c.Size)
		verdict = fmt.Sprintf("The proof holds: the checkpoint of %s with the size %d has it.", c.Origin, c.Size)
	}
	if err != nil {
		return nil, "", err
	}
	facts = append(facts, fact, "leaf: "+leaf.Kind+" "+leaf.ID.String())
	for i := range leaf.Groups {
		g := &leaf.Groups[i]
		for _, m := range g.Members {
			name := strings.TrimPrefix(g.Name+"."+m.Name, ".")
			facts = append(facts, fmt.Sprintf("%s: %q", name, readable(g, m)))
		}
	}
	return facts, verdict, nil
}

// readable formats the value of a member for people. It does not change a value that the
// service never writes.
func readable(g *proof.Group, m proof.Member) string {
	n, err := strconv.ParseInt(m.Value, 10, 64)
	if err != nil {
		return m.Value
	}
	switch m.Name {
	case "Amount":
		return amount(n, m.Value, g.Value("DestinationAccount.CurrencyCode"))
	case "Proceeds":
		return amount(n, m.Value, g.Value("ProceedsCurrencyCode"))
	case "FundAmount":
		return fund.Units(n).String()
	case "SettledPrice", "Price":
		return fund.UnitPrice(n).String()
	case "State":
		for _, state := range []operation.State{operation.Recorded, operation.Completed, operation.Failed} {
			if int64(state) == n {
				return state.String()
			}
		}
	}
	return m.Value
}

func amount(minor int64, text, code string) string {
	currency, ok := money.ParseCurrency(code)
	if !ok {
		return text
	}
	return money.New(minor, currency).String()
}
