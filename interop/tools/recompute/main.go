// Recompute checks a proof of Bulla by what Go's checksum database is made of: golang.org/x/mod/sumdb/note has the signature, and
// golang.org/x/mod/sumdb/tlog the path from a record to the root. What lies between an entry and the record, which is a block's tree, it
// computes by docs/format.md ("Units and the root of a block", "Proofs"), with Go's own hashes.
//
//	recompute VKEY FILE
//
// It takes proofs of entries of one frame, of an event, and of consistency, prints one JSON object of what was proven, and ends with 1,
// and the reason on standard error, where the file proves nothing.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Proven is what a file proves.
type Proven struct {
	Size    int64    `json:"size"`
	OldSize int64    `json:"old_size,omitempty"`
	Frame   int64    `json:"frame,omitempty"`
	Event   string   `json:"event,omitempty"`
	Units   int      `json:"units,omitempty"`
	Hash    string   `json:"hash,omitempty"`
	Entries []*Entry `json:"entries,omitempty"`
}

// checkpoint is a signed tree head.
type checkpoint struct {
	origin string
	size   int64
	root   tlog.Hash
}

// openCheckpoint reads a checkpoint, which has to be signed with the key and of its name.
func openCheckpoint(signed []byte, verifier note.Verifier) (*checkpoint, error) {
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return nil, fmt.Errorf("the checkpoint: %w", err)
	}
	lines := strings.SplitN(opened.Text, "\n", 4)
	if len(lines) < 4 {
		return nil, errors.New("the checkpoint must have three lines")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint's size: %w", err)
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return nil, fmt.Errorf("the checkpoint's root: %w", err)
	}
	if lines[0] != verifier.Name() {
		return nil, fmt.Errorf("the checkpoint is of %s, and not of %s", lines[0], verifier.Name())
	}
	return &checkpoint{lines[0], size, root}, nil
}

// value takes the value of the next line, which has to begin with a name.
func value(lines *[]string, name string) (string, error) {
	if len(*lines) == 0 || !strings.HasPrefix((*lines)[0], name+" ") {
		return "", fmt.Errorf("a line `%s` must be there", name)
	}
	found := strings.TrimPrefix((*lines)[0], name+" ")
	*lines = (*lines)[1:]
	return found, nil
}

// data is the value of a line of base64.
func data(lines *[]string, name string) ([]byte, error) {
	text, err := value(lines, name)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// path is what the rest of the lines, a hash each, come to.
func path(lines []string) ([]tlog.Hash, error) {
	var hashes []tlog.Hash
	for _, line := range lines {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}

func check(verifier note.Verifier, file []byte) (*Proven, error) {
	head, signed, found := bytes.Cut(file, []byte("\n\n"))
	if !found {
		return nil, errors.New("an empty line and a checkpoint must be there")
	}
	now, err := openCheckpoint(signed, verifier)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(head), "\n")
	kind, lines := lines[0], lines[1:]
	switch kind {
	case "c2sp.org/tlog-proof@v1":
		return entries(lines, now)
	case "bulla-event-v1":
		return event(lines, now)
	case "bulla-consistency-v1":
		return growth(lines, now, verifier)
	}
	return nil, fmt.Errorf("%q is no kind of proof that this knows", kind)
}

// included looks whether a commitment is a record of the tree.
func included(frame int64, commitment []byte, lines []string, in *checkpoint) error {
	proof, err := path(lines)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(tlog.RecordProof(proof), in.size, in.root, frame, tlog.RecordHash(commitment))
}

func entries(lines []string, now *checkpoint) (*Proven, error) {
	extra, err := data(&lines, "extra")
	if err != nil {
		return nil, err
	}
	index, err := value(&lines, "index")
	if err != nil {
		return nil, err
	}
	frame, err := strconv.ParseInt(index, 10, 64)
	if err != nil {
		return nil, err
	}
	disclosed, err := disclosure(extra)
	if err != nil {
		return nil, fmt.Errorf("the disclosure: %w", err)
	}
	if int64(disclosed.commitment.frame) != frame {
		return nil, errors.New("the commitment must be that of the frame in the index line")
	}
	if err := included(frame, disclosed.commitment.encoded, lines, now); err != nil {
		return nil, err
	}
	return &Proven{Size: now.size, Frame: frame, Units: disclosed.units, Hash: disclosed.commitment.hashName(), Entries: disclosed.entries}, nil
}

func event(lines []string, now *checkpoint) (*Proven, error) {
	encoded, err := data(&lines, "commitment")
	if err != nil {
		return nil, err
	}
	body, err := data(&lines, "event")
	if err != nil {
		return nil, err
	}
	commitment, err := decodeCommitment(encoded, kindEvent)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(body) != commitment.bodyDigest {
		return nil, errors.New("the event must have the digest in the commitment")
	}
	frame := int64(commitment.frame)
	if err := included(frame, encoded, lines, now); err != nil {
		return nil, err
	}
	return &Proven{Size: now.size, Frame: frame, Event: string(body)}, nil
}

func growth(lines []string, now *checkpoint, verifier note.Verifier) (*Proven, error) {
	signed, err := data(&lines, "old")
	if err != nil {
		return nil, err
	}
	before, err := openCheckpoint(signed, verifier)
	if err != nil {
		return nil, err
	}
	proof, err := path(lines)
	if err != nil {
		return nil, err
	}
	if err := tlog.CheckTree(tlog.TreeProof(proof), now.size, now.root, before.size, before.root); err != nil {
		return nil, err
	}
	return &Proven{Size: now.size, OldSize: before.size}, nil
}

func run(vkey, name string) error {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return err
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	proven, err := check(verifier, file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return json.NewEncoder(os.Stdout).Encode(proven)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "recompute VKEY FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
