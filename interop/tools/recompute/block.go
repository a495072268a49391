package main

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"time"
)

const (
	kindBlock = 1
	kindEvent = 3
	unitRow   = 4
	unitGroup = 5
	// The most that a block may have.
	mostItems = 4092
	mostUnits = 1 << 21
)

// commitment is a frame's public description (docs/format.md, "Commitments").
type commitment struct {
	encoded    []byte
	hash       byte
	frame      uint64
	firstEntry uint64
	entries    uint64
	units      uint64
	root       []byte
	bodyDigest [32]byte
}

func decodeCommitment(encoded []byte, kind byte) (*commitment, error) {
	if len(encoded) != 152 || encoded[0] != 1 || encoded[1] != kind {
		return nil, fmt.Errorf("a commitment must have 152 bytes, version 1 and kind %d", kind)
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(encoded[at:]) }
	found := &commitment{encoded: encoded, hash: encoded[3], frame: word(24), firstEntry: word(32), entries: word(40), units: word(72), root: encoded[80:112]}
	copy(found.bodyDigest[:], encoded[120:])
	if found.frame >= 1<<62 || found.entries > 1<<21 || found.units > mostUnits || found.hash != 1 && found.hash != 2 {
		return nil, errors.New("a commitment must have numbers within their limits, and a hash that there is")
	}
	return found, nil
}

func (it *commitment) hashName() string {
	return map[byte]string{1: "sha256", 2: "sha3-256"}[it.hash]
}

func (it *commitment) digest(parts ...[]byte) []byte {
	var hash hash.Hash = sha256.New()
	if it.hash == 2 {
		hash = sha3.New256()
	}
	for _, part := range parts {
		hash.Write(part)
	}
	return hash.Sum(nil)
}

// cursor reads what was not looked at yet; the first thing that is not there makes all that follows nothing.
type cursor struct {
	rest []byte
	err  error
}

func (it *cursor) take(length uint64) []byte {
	if it.err == nil && uint64(len(it.rest)) < length {
		it.err = errors.New("ends too early")
	}
	if it.err != nil {
		return nil
	}
	taken := it.rest[:length]
	it.rest = it.rest[length:]
	return taken
}

func (it *cursor) u8() byte {
	if taken := it.take(1); taken != nil {
		return taken[0]
	}
	return 0
}

func (it *cursor) varint() uint64 {
	if it.err != nil {
		return 0
	}
	number, length := binary.Uvarint(it.rest)
	if length <= 0 || length > 1 && it.rest[length-1] == 0 {
		it.err = errors.New("a varint must be in its shortest form")
		return 0
	}
	it.rest = it.rest[length:]
	return number
}

// fixed is a number of so many bytes, the least first.
func (it *cursor) fixed(length uint64) uint64 {
	var number uint64
	for index, one := range it.take(length) {
		number |= uint64(one) << (8 * index)
	}
	return number
}

// bytes takes as many bytes as the varint before them says.
func (it *cursor) bytes() []byte {
	return it.take(it.varint())
}

// below is a varint that has to be within a limit, the limit included.
func (it *cursor) below(limit uint64) uint64 {
	number := it.varint()
	if number > limit && it.err == nil {
		it.err = fmt.Errorf("%d must be at most %d", number, limit)
	}
	return number
}

// Entry is an entry as far as a proof shows it: of an entry in a group, what is shared.
type Entry struct {
	Number    uint64 `json:"entry"`
	Time      string `json:"time"`
	Operation string `json:"operation"`
	Processor string `json:"processor,omitempty"`
	Purpose   string `json:"purpose,omitempty"`
	Location  string `json:"location,omitempty"`
	Payload   string `json:"payload,omitempty"`
}

// row decodes the canonical encoding of an entry (docs/format.md, "Rows").
func row(number uint64, encoded []byte) (*Entry, error) {
	it := &cursor{rest: encoded}
	present := it.fixed(2)
	entry := &Entry{Number: number, Time: time.Unix(0, int64(it.fixed(8))).UTC().Format(time.RFC3339Nano), Operation: string(it.bytes())}
	var controller, client, actor, stream string
	strings := map[int]*string{0: &controller, 1: &entry.Processor, 2: &entry.Purpose, 7: &entry.Location, 8: &client, 9: &actor, 10: &stream, 11: &entry.Payload}
	for bit := range 12 {
		if present>>bit&1 == 0 {
			continue
		}
		if string_ := strings[bit]; string_ != nil {
			*string_ = string(it.bytes())
		} else {
			it.varint()
		}
	}
	if present>>12&1 == 1 {
		for range it.below(64) {
			it.bytes()
		}
	}
	if it.err == nil && (len(it.rest) > 0 || present>>13 != 0) {
		it.err = errors.New("a row must have no more than its fields")
	}
	return entry, it.err
}

// disclosed is what a proof shows of one block.
type disclosed struct {
	commitment *commitment
	units      int
	entries    []*Entry
}

// disclosure reads what a proof discloses, and computes the root of the block's tree from it, which has to be the commitment's.
func disclosure(extra []byte) (*disclosed, error) {
	it := &cursor{rest: extra}
	if it.u8() != 1 {
		return nil, errors.New("the version must be 1")
	}
	encoded := it.take(152)
	if it.err != nil {
		return nil, it.err
	}
	commitment, err := decodeCommitment(encoded, kindBlock)
	if err != nil {
		return nil, err
	}
	shown := &disclosed{commitment: commitment}
	leaves := map[uint64][]byte{}
	count, next := it.below(commitment.units), uint64(0)
	for range count {
		position := next + it.below(commitment.units)
		next = position + 1
		from := it.rest
		kind, salt := it.u8(), it.take(16)
		var content []byte
		switch content = it.rest; kind {
		case unitRow:
			err = shown.takeRow(it)
			content = content[:len(content)-len(it.rest)]
		case unitGroup:
			var behind int
			behind, err = shown.takeGroup(it)
			content = content[:len(content)-len(it.rest)-behind]
		default:
			err = errors.New("a unit must be a row or a group")
		}
		if err = errors.Join(err, it.err); err != nil {
			return nil, err
		}
		leaves[position] = commitment.digest(from[:1], salt, content)
		shown.units++
	}
	items := it.below(mostItems)
	shownItems := it.below(items)
	for next = 0; shownItems > 0 && it.err == nil; shownItems-- {
		position := next + it.below(items)
		next = position + 1
		salt := it.take(16)
		leaves[commitment.units+position] = commitment.digest([]byte{3}, salt, binary.LittleEndian.AppendUint64(nil, position), it.bytes())
	}
	size := commitment.units + items
	top, err := multiProof(commitment, leaves, size, it)
	if err != nil {
		return nil, err
	}
	if len(it.rest) > 0 {
		return nil, errors.New("nothing must follow the hashes")
	}
	counts := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, commitment.units), items)
	if !bytes.Equal(commitment.digest([]byte{2}, counts, top), commitment.root) {
		return nil, errors.New("the units must lead to the root in the commitment")
	}
	return shown, nil
}

func (it *disclosed) add(place uint64, encoded []byte) error {
	if place >= it.commitment.entries {
		return errors.New("an entry must be one of its frame")
	}
	entry, err := row(it.commitment.firstEntry+place, encoded)
	it.entries = append(it.entries, entry)
	return err
}

func (it *disclosed) takeRow(from *cursor) error {
	place := from.varint()
	encoded := from.bytes()
	if from.err != nil {
		return from.err
	}
	return it.add(place, encoded)
}

// takeGroup reads a group, and says how many bytes of it are behind what is hashed. Where the secret is there, it has to be the one that was
// committed to; the ciphertext, which is hashed, is not opened.
func (it *disclosed) takeGroup(from *cursor) (int, error) {
	from.take(2)
	place := uint64(0)
	for range from.below(it.commitment.entries) {
		place += from.varint()
		encoded := from.bytes()
		if from.err != nil {
			return 0, from.err
		}
		if err := it.add(place, encoded); err != nil {
			return 0, err
		}
		place++
	}
	for range from.below(64) {
		from.varint()
	}
	from.bytes()
	committed := from.take(32)
	if from.u8() == 0 || from.err != nil {
		return 1, from.err
	}
	secret := from.take(32)
	keys, err := hkdf.Expand(sha256.New, secret, "bulla group keys v2", 64)
	if err != nil {
		return 0, err
	}
	if from.err == nil && !bytes.Equal(keys[32:], committed) {
		return 0, errors.New("the secret must be the one that the group commits to")
	}
	return 33, from.err
}

// multiProof is the node at the top of a tree of nodes with four children at most.
func multiProof(of *commitment, leaves map[uint64][]byte, width uint64, it *cursor) ([]byte, error) {
	for width > 1 {
		above := map[uint64][]byte{}
		for parent := range (width + 3) / 4 {
			var children [][]byte
			first, last := parent*4, min(parent*4+4, width)
			known := false
			for at := first; at < last; at++ {
				known = known || leaves[at] != nil
			}
			if !known {
				continue
			}
			for at := first; at < last; at++ {
				child := leaves[at]
				if child == nil {
					child = it.take(32)
				}
				children = append(children, child)
			}
			if above[parent] = children[0]; len(children) > 1 {
				above[parent] = of.digest(append([][]byte{{6}}, children...)...)
			}
		}
		leaves, width = above, (width+3)/4
	}
	if it.err == nil && leaves[0] == nil {
		it.err = errors.New("a unit must be disclosed")
	}
	return leaves[0], it.err
}
