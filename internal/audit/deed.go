package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Deed is what becomes an entry, as whoever does it hands it over: what can be made
// of it later is left to whoever writes.
type Deed struct {
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

// entry is what is kept of a deed, but for its place in the chain.
func (d *Deed) entry() Entry {
	e := Entry{
		At: d.At.UTC().Truncate(time.Microsecond), Who: d.Who, Name: d.Name, Client: d.Client,
		Action: d.Action, Subject: d.Subject, Decision: d.Decision, Rule: d.Rule, Size: d.Size, Error: d.Error, Took: d.Took,
	}
	const trace, request = 2 * len(d.Trace), 2 * len(d.Request)
	var text [trace + request + 2*len(d.Args)]byte
	hex.Encode(text[:], d.Trace[:])
	hex.Encode(text[trace:], d.Request[:])
	hex.Encode(text[trace+request:], d.Args[:])
	all := string(text[:]) // one piece of memory for the three
	if d.Trace != [len(d.Trace)]byte{} {
		e.Trace = all[:trace]
	}
	if d.Request != [len(d.Request)]byte{} {
		e.Request = all[trace : trace+request]
	}
	if d.Args != (Sum{}) {
		e.Args = all[trace+request:]
	}
	return e
}

// add writes what was done as the next line of the chain.
func (c *Chain) add(d *Deed, out []byte) (line []byte, seq, at int64) {
	e := d.entry()
	e.Node, e.Seq, e.Prev = c.Node, c.Seq+1, c.Hash
	start := len(out)
	out = e.appendUnsigned(out)
	if bytes.Contains(out[start:], []byte(`\ufffd`)) { // what encoding/json makes of broken text, and reads as something else
		e.mend()
		out = e.appendUnsigned(out[:start])
	}
	e.Hash = Digest(out[start:]).String()
	c.Seq, c.Hash = e.Seq, e.Hash
	return e.sign(out), e.Seq, e.At.UnixMicro()
}

// mend makes whole what is no text, so that it is the same when it is read and
// written again, as exports are.
func (e *Entry) mend() {
	for _, text := range []*string{&e.Node, &e.Who, &e.Name, &e.Client, &e.Action, &e.Subject, &e.Decision, &e.Rule, &e.Error} {
		*text = whole(*text)
	}
}

func whole(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
