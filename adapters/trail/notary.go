// Package trail keeps the log of the trail: a Merkle tree over the batches of package
// domain/proof, and signed checkpoints of the tree. README.md describes the format, and
// check.py checks proofs without this package.
//
// The tree has the format of golang.org/x/mod/sumdb/tlog. The signed checkpoints follow the
// C2SP specifications tlog-checkpoint and signed-note. So other tools can check them too.
package trail

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	application "bankingapi/application/trail"
	"bankingapi/domain/proof"
)

// Checkpoint is a state of the log: its size in batches, and the root of its tree.
type Checkpoint struct {
	// Origin names the log.
	Origin string
	proof.Base
}

// text returns the form that is signed (C2SP tlog-checkpoint).
func (c *Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
}

func parseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[len(lines)-1] != "" {
		return c, errors.New("not a checkpoint")
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, errors.New("not a checkpoint: the size is not a number")
	}
	if c.Root, err = tlog.ParseHash(lines[2]); err != nil || c.Root.String() != lines[2] {
		return c, errors.New("not a checkpoint: the root is not a hash")
	}
	return c, nil
}

// GenerateKeys makes a signing key and the key that verifies it. name is the origin of the log.
// Package note makes keys with any name, and reads only those with the names that are checked here.
func GenerateKeys(name string) (signing, verifying string, err error) {
	isOutside := func(r rune) bool { return r == '+' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, isOutside) {
		return "", "", errors.New("the name of a trail has only printable characters, no spaces and no plus signs")
	}
	return note.GenerateKey(rand.Reader, name)
}

// Notary signs checkpoints and receipts. It is safe for concurrent use.
type Notary struct {
	signer    note.Signer
	secret    []byte
	verifying string
}

// errNoKey is the error of a text that is not a signing key.
var errNoKey = errors.New("not a signing key of the trail")

// NewNotary returns the Notary of a signing key. The error never contains the key.
func NewNotary(signingKey string) (*Notary, error) {
	signer, err := note.NewSigner(strings.TrimSpace(signingKey))
	if err != nil {
		return nil, errNoKey
	}
	secret := []byte(strings.TrimSpace(signingKey))
	verifying, err := verifyingKey(string(secret))
	return &Notary{signer, secret, verifying}, err
}

// verifyingKey derives the key that verifies the signatures of a signing key.
func verifyingKey(signing string) (string, error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(signing, "PRIVATE+KEY+"), "+")
	_, encoded, _ := strings.Cut(rest, "+")
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errNoKey
	}
	public, _ := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(name, public)
}

// VerifyingKey returns the key that verifies the signatures of the Notary. It is public.
func (n *Notary) VerifyingKey() string { return n.verifying }

// Keys returns the keys that are used to write leaves.
func (n *Notary) Keys() *proof.Keys { return proof.NewKeys(n.secret) }

func (n *Notary) sign(text string) (string, error) {
	signed, err := note.Sign(&note.Note{Text: text}, n.signer)
	return string(signed), err
}

// Append appends records to a log in this state. It returns an error unless this notary has
// signed the state, or if the hashes do not belong to the state.
func (n *Notary) Append(state application.State, records [][]byte, hashes proof.Hashes) (sealed application.Sealed, err error) {
	tree, err := proof.LoadTree(state.Size, hashes)
	if err != nil {
		return sealed, err
	}
	if state.Size != 0 || state.Checkpoint != "" {
		signed, err := n.Open(state.Checkpoint)
		if err != nil {
			return sealed, fmt.Errorf("the log is not one of the key in trail.key_file: %w", err)
		}
		if signed != (proof.Base{Size: state.Size, Root: tree.Root()}) {
			return sealed, application.Flaw("the log does not match its checkpoint: it was changed. Run `bankingapi verify`")
		}
	}
	sealed.First = proof.StoredHashes(state.Size)
	for _, record := range records {
		sealed.Hashes = append(sealed.Hashes, tree.Append(record)...)
	}
	sealed.Checkpoint, err = n.sign((&Checkpoint{n.signer.Name(), proof.Base{Size: tree.Size(), Root: tree.Root()}}).text())
	return sealed, err
}

// Open returns the content of a checkpoint that this notary has signed.
func (n *Notary) Open(checkpoint string) (proof.Base, error) {
	c, err := OpenCheckpoint(checkpoint, n.verifying)
	return c.Base, err
}

// isOthers reports whether a checkpoint has the signature of another key. It is false for a text
// that is no checkpoint.
func (n *Notary) isOthers(checkpoint string) bool {
	_, err := note.Open([]byte(checkpoint), note.VerifierList())
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	return ok && !slices.ContainsFunc(unverified.Note.UnverifiedSigs, func(s note.Signature) bool { return s.Hash == n.signer.KeyHash() })
}

// OpenCheckpoint verifies the signature of a checkpoint and returns it.
func OpenCheckpoint(signed, verifyingKey string) (Checkpoint, error) {
	text, name, err := open(signed, verifyingKey)
	if err != nil {
		return Checkpoint{}, err
	}
	c, err := parseCheckpoint(text)
	if err != nil {
		return c, err
	}
	if c.Origin != name {
		return c, errors.New("the checkpoint is of another log than the key")
	}
	return c, nil
}

func open(signed, verifyingKey string) (text, name string, err error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(verifyingKey))
	if err != nil {
		return "", "", errors.New("not a verifying key of the trail: it looks like name+hash+key")
	}
	opened, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil || len(opened.Sigs) != 1 {
		return "", "", errors.New("the signature is not of this key")
	}
	// A text must have only one signed form for each key. Otherwise parts that are not verified
	// could be changed without being noticed.
	signature, err := base64.StdEncoding.Strict().DecodeString(opened.Sigs[0].Base64)
	if err != nil || signed != fmt.Sprintf("%s\n— %s %s\n", opened.Text, verifier.Name(), base64.StdEncoding.EncodeToString(signature)) {
		return "", "", errors.New("the note has more than a text and the signature of this key")
	}
	return opened.Text, verifier.Name(), nil
}
