package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
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

	// Activity is what the entry has beside its hashed text, for a shorter time; nil for
	// entries that are no calls.
	Activity *Activity `json:"-"`
}

// Digest is the SHA-256 of arguments.
func Digest(args []byte) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// settle gives an entry the form in which it is stored: without invalid UTF-8 and parts of a
// microsecond, so that a reader who decodes and encodes it gets the same text.
func (e *Entry) settle() {
	e.At = e.At.UTC().Truncate(time.Microsecond)
	for _, text := range []*string{
		&e.Who, &e.Name, &e.Org, &e.For, &e.By, &e.Grant, &e.Client, &e.Agent, &e.Action, &e.Subject, &e.Decision, &e.Rule, &e.Error,
	} {
		*text = valid(*text)
	}
}

func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// row is an entry as it is stored: its JSON, and the columns that it is found by.
type row struct {
	node                         string
	seq, at                      int64 // at is microseconds since 1970
	org                          string
	who, name, subject, decision string
	entry                        string
}

const rowColumns = `node, seq, at, org, who, name, subject, decision, entry`

// newRow is a row with what activity shows of it.
type newRow struct {
	row
	session string
	own     int
	detail  string
}

// newColumns are those of a newRow, and columnCount is their number.
const (
	newColumns  = rowColumns + `, session, own, detail`
	columnCount = 12
)

// rowOf stores an entry whose JSON is text.
func rowOf(e *Entry, text string) row {
	return row{
		node: e.Node, seq: e.Seq, at: e.At.UnixMicro(), entry: text,
		org: column(e.Org), who: column(e.Who), name: column(e.Name), subject: column(e.Subject), decision: column(e.Decision),
	}
}

func scanRow(from db.Scanner) (r row, err error) {
	return r, from.Scan(&r.node, &r.seq, &r.at, &r.org, &r.who, &r.name, &r.subject, &r.decision, &r.entry)
}

// column is text for a column: Postgres stores neither zero bytes nor invalid UTF-8.
func column(text string) string {
	return strings.ReplaceAll(valid(text), "\x00", "\ufffd")
}

// maxRows is how many rows one statement inserts.
const maxRows = 64

// insertRows inserts rows, many per statement. The numbers of rows are powers of two,
// so that the database prepares only a few different statements.
//
// Two processes of one node may insert the same sequence number at once. Postgres
// reports that as a conflict of transactions, which db.Write retries, only with
// ON CONFLICT DO NOTHING; a row that was there before is an error.
func insertRows(ctx context.Context, tx *db.Tx, rows []newRow) error {
	for n := maxRows; len(rows) > 0; {
		for n > len(rows) {
			n /= 2
		}
		args := make([]any, 0, columnCount*n)
		for _, r := range rows[:n] {
			args = append(args, r.node, r.seq, r.at, r.org, r.who, r.name, r.subject, r.decision, r.entry, r.session, r.own, r.detail)
		}
		added, err := tx.Exec(ctx, inserts()[n], args...)
		if err != nil {
			return err
		}
		if added < int64(n) {
			return fault.New(fault.Conflict, "audit entry %d of node %s, or one of the %d after it, exists already", rows[0].seq, rows[0].node, n-1).
				WithHint("the table audit_log was edited by hand: run luanette audit verify")
		}
		rows = rows[n:]
	}
	return nil
}

// inserts are the statements of insertRows, by the number of rows. They are made when they
// are first needed, since that takes as long as some commands.
var inserts = sync.OnceValue(func() map[int]string {
	all := map[int]string{}
	for n := 1; n <= maxRows; n *= 2 {
		var text strings.Builder
		text.WriteString(`INSERT INTO audit_log (` + newColumns + `) VALUES `)
		for i := range columnCount * n {
			switch {
			case i == 0:
				text.WriteString(`(`)
			case i%columnCount == 0:
				text.WriteString(`), (`)
			default:
				text.WriteString(`, `)
			}
			text.WriteString("$" + strconv.Itoa(i+1))
		}
		all[n] = text.String() + `) ON CONFLICT DO NOTHING`
	}
	return all
})

// entryEnd follows the hash in the JSON of an entry.
const entryEnd = `"}`

// unsigned is the text that the hash of an entry is made of: its JSON with an empty hash.
func (e *Entry) unsigned() []byte {
	text, _ := json.Marshal(e) // it always encodes: times are between the years 0 and 9999
	return append(text[:len(text)-len(e.Hash)-len(entryEnd)], entryEnd...)
}

// sign puts the hash into the JSON of an entry that was written without it.
func sign(unsigned []byte, hash string) string {
	return string(unsigned[:len(unsigned)-len(entryEnd)]) + hash + entryEnd
}

// isSigned reports whether the hash in the JSON of an entry is the hash of its text.
func isSigned(text, hash string) bool {
	unsigned, ok := strings.CutSuffix(text, hash+entryEnd)
	return ok && Digest([]byte(unsigned+entryEnd)) == hash
}

func decode(text string) (e Entry, err error) {
	err = json.Unmarshal([]byte(text), &e)
	return e, err
}

// redactedAtOnce bounds the entries that one transaction reads and changes.
const redactedAtOnce = 500

// ofPerson finds the entries in which a person occurs: as who did it, for whom, or what it
// was about. IDs of people are random, and nothing else contains them.
const ofPerson = `SELECT node, seq, entry FROM audit_log WHERE (node > $1 OR node = $1 AND seq > $2) AND entry LIKE $3 ORDER BY node, seq LIMIT 500`

type place struct {
	node  string
	seq   int64
	entry string
}

func (s *Store) mentions(ctx context.Context, tx *db.Tx, p personal.Person, after place) ([]place, error) {
	return db.All(ctx, tx, func(row db.Scanner) (at place, err error) { return at, row.Scan(&at.node, &at.seq, &at.entry) },
		ofPerson, after.node, after.seq, "%"+p.ID+"%")
}

// Export calls write for each entry of a person.
func (l *Log) Export(ctx context.Context, p personal.Person, write func(kind string, value any) error) error {
	l.flush(ctx)
	for after := (place{}); ; {
		var list []place
		err := l.db.Read(ctx, func(tx *db.Tx) (err error) {
			list, err = l.mentions(ctx, tx, p, after)
			return err
		})
		if err != nil || len(list) == 0 {
			return reading(err)
		}
		for _, at := range list {
			e, err := decode(at.entry)
			if err != nil {
				continue // it was changed: Verify reports it
			}
			if err := write("audit", e); err != nil {
				return err
			}
		}
		after = list[len(list)-1]
	}
}

// Erase replaces a person by the pseudonym in all entries, and removes from them what they
// were about in particular. That something was done stays, in its place in the chain.
func (l *Log) Erase(ctx context.Context, p personal.Person) error {
	l.flush(ctx)
	for after := (place{}); ; {
		var list []place
		err := l.db.Write(ctx, func(tx *db.Tx) (err error) {
			if list, err = l.mentions(ctx, tx, p, after); err != nil {
				return err
			}
			for _, at := range list {
				if err := redactEntry(ctx, tx, at, p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(list) < redactedAtOnce {
			return errors.Join(reading(err), l.eraseSessions(ctx, p))
		}
		after = list[len(list)-1]
	}
}

func redactEntry(ctx context.Context, tx *db.Tx, at place, p personal.Person) error {
	e, err := decode(at.entry)
	if err != nil || e.Hash == "" {
		return nil //nolint:nilerr // it was changed: Verify reports it
	}
	e = e.without(p)
	r := rowOf(&e, sign(e.unsigned(), e.Hash))
	_, err = tx.Exec(ctx, `UPDATE audit_log SET who = $1, name = $2, subject = $3, entry = $4, session = '', detail = '' WHERE node = $5 AND seq = $6`,
		r.who, r.name, r.subject, r.entry, at.node, at.seq)
	return err
}

// without returns the entry with the pseudonym in place of the person.
func (e *Entry) without(p personal.Person) Entry {
	rest := *e
	own := e.For == p.ID || strings.HasSuffix(e.For, "/"+p.ID) || strings.Contains(e.Who, p.ID)
	replace := strings.NewReplacer(principal.PersonPrefix+p.ID, p.Pseudonym, p.ID, p.Pseudonym)
	for _, text := range []*string{&rest.Who, &rest.Name, &rest.For, &rest.Client, &rest.Subject, &rest.Rule} {
		*text = replace.Replace(*text)
	}
	if own {
		rest.Who, rest.Name, rest.Client, rest.Grant, rest.Args, rest.Trace, rest.Request = p.Pseudonym, p.Pseudonym, "", "", "", "", ""
		_, err := netip.ParseAddr(rest.Subject) // from where they signed in
		if err == nil || slices.Contains(p.Principals, "key:"+e.Subject) {
			rest.Subject = p.Pseudonym
		}
	}
	rest.Redacted = true
	return rest
}
