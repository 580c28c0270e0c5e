package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Call is the action of an entry about a tool call.
const Call = "call"

// Entry is one stored action, allowed or refused.
type Entry struct {
	Node string    `json:"node"`
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`

	Who     string `json:"who"`               // the principal's id
	Name    string `json:"name,omitempty"`    // and name
	Org     string `json:"org,omitempty"`     // the organisation it was done in
	For     string `json:"for,omitempty"`     // the person on whose behalf
	By      string `json:"by,omitempty"`      // the client that the person allowed to act for them
	Grant   string `json:"grant,omitempty"`   // what they allowed it
	Client  string `json:"client,omitempty"`  // the connection or user behind it
	Agent   string `json:"agent,omitempty"`   // the program, as it calls itself: claude-code 2.1.0
	Trace   string `json:"trace,omitempty"`   // trace id
	Request string `json:"request,omitempty"` // the call within the trace

	Action   string `json:"action"`             // Call, or what an administrator did
	Subject  string `json:"subject"`            // the tool, or what the action was about
	Args     string `json:"args,omitempty"`     // SHA-256 of the arguments
	Decision string `json:"decision,omitempty"` // allow or deny
	Rule     string `json:"rule,omitempty"`     // the rule that decided

	Size  int64  `json:"size"`            // of the result, in bytes
	Error string `json:"error,omitempty"` // its code
	Took  int64  `json:"took_us"`

	Redacted bool `json:"redacted,omitempty"` // a person in it was erased: its hash is that of the text before

	Prev string `json:"prev"` // hash of the entry before
	Hash string `json:"hash"`
}

// Draft is an entry as the caller of Log.Record knows it. The log adds the node, the
// sequence number and the hashes, and formats the binary fields, when it writes.
type Draft struct {
	At time.Time // zero is now

	Who, Name, Org, For string
	By, Grant           string
	Client, Agent       string
	Trace               [16]byte // zero is none
	Request             [8]byte

	Action, Subject string
	Args            Sum
	Decision, Rule  string

	Size  int64
	Error string
	Took  int64 // microseconds
}

// Sum is a SHA-256. Zero is none.
type Sum [sha256.Size]byte

// Digest is the sum of arguments.
func Digest(args []byte) Sum { return sha256.Sum256(args) }

// String is the sum in hexadecimal digits.
func (s Sum) String() string {
	var text [2 * len(s)]byte
	hex.Encode(text[:], s[:])
	return string(text[:])
}

// entry makes an entry without its place in the chain. Invalid UTF-8 is replaced, so
// that a reader who decodes and encodes the entry gets the same text.
func (d *Draft) entry() Entry {
	return Entry{
		At: d.At.UTC().Truncate(time.Microsecond), Who: valid(d.Who), Name: valid(d.Name),
		Org: valid(d.Org), For: valid(d.For), By: valid(d.By), Grant: valid(d.Grant), Client: valid(d.Client), Agent: valid(d.Agent),
		Trace: hexOf(d.Trace[:]), Request: hexOf(d.Request[:]), Args: hexOf(d.Args[:]),
		Action: valid(d.Action), Subject: valid(d.Subject), Decision: valid(d.Decision), Rule: valid(d.Rule),
		Size: d.Size, Error: valid(d.Error), Took: d.Took,
	}
}

func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// hexOf is a number in hexadecimal digits; zero is none.
func hexOf(number []byte) string {
	for _, b := range number {
		if b != 0 {
			return hex.EncodeToString(number)
		}
	}
	return ""
}
