package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Draft is what becomes an entry, as whoever does it hands it over: what can be made
// of it later is left to whoever writes.
type Draft struct {
	At time.Time // zero is now

	Who, Name, Client string
	Trace             [16]byte // zero is none
	Request           [8]byte

	Action, Subject string
	Args            Sum
	Decision, Rule  string

	Size  int64
	Error string
	Took  int64 // microseconds
}

// Sum is a SHA-256. Zero is none.
type Sum [sha256.Size]byte

// Digest is how arguments stand in an entry.
func Digest(args []byte) Sum { return sha256.Sum256(args) }

// String writes a sum as entries have it.
func (s Sum) String() string {
	var text [2 * len(s)]byte
	hex.Encode(text[:], s[:])
	return string(text[:])
}

// entry is what is kept of a deed, but for its marks and its place in the chain.
func (d *Draft) entry() Entry {
	return Entry{
		At: d.At.UTC().Truncate(time.Microsecond), Who: d.Who, Name: d.Name, Client: d.Client,
		Action: d.Action, Subject: d.Subject, Decision: d.Decision, Rule: d.Rule, Size: d.Size, Error: d.Error, Took: d.Took,
	}
}

// growing is a chain that deeds are added to.
type growing struct {
	node string
	seq  int64
	hash []byte // of the last entry, as it is written
}

// add writes what was done as the next line of the chain.
func (c *growing) add(d *Draft, out []byte) (line []byte, seq, at int64) {
	c.seq++
	e, start := d.entry(), len(out)
	e.Node, e.Seq = c.node, c.seq
	var trace [2 * len(d.Trace)]byte
	var request [2 * len(d.Request)]byte
	var args [2 * len(d.Args)]byte
	m := marks[[]byte]{
		trace: spelled(trace[:0], d.Trace[:]), request: spelled(request[:0], d.Request[:]),
		args: spelled(args[:0], d.Args[:]), prev: c.hash,
	}
	out = appendUnsigned(out, &e, m)
	if bytes.Contains(out[start:], []byte(`\ufffd`)) { // what encoding/json makes of broken text, and reads as something else
		e.mend()
		out = appendUnsigned(out[:start], &e, m)
	}
	sum := Digest(out[start:])
	c.hash = hex.AppendEncode(c.hash[:0], sum[:])
	return sign(out, c.hash), e.Seq, e.At.UnixMicro()
}

// spelled is a number as entries have it, written into the given room; zero is none.
func spelled(room, number []byte) []byte {
	for _, b := range number {
		if b != 0 {
			return hex.AppendEncode(room, number)
		}
	}
	return nil
}

// mend makes whole what is no text, so that it is the same when it is read and
// written again, as exports are.
func (e *Entry) mend() {
	for _, text := range []*string{&e.Node, &e.Who, &e.Name, &e.Client, &e.Action, &e.Subject, &e.Decision, &e.Rule, &e.Error} {
		*text = whole(*text)
	}
}

func whole(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
