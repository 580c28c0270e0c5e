package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// A line is an entry as it is kept and exported: its JSON. What Verify and Cut need
// of it is read off as it stands, without decoding the rest: in JSON a quotation
// mark within a text is escaped, so a member's name is found by looking for it.
const (
	beforeNode = `{"node":`
	beforeSeq  = `,"seq":`
	beforeAt   = `,"at":"`
	beforePrev = `,"prev":"`
	beforeHash = `,"hash":"`
	lineEnd    = `"}`
)

// link is what holds an entry in its chain.
type link struct {
	node       string // as JSON
	seq        int64
	at         int64 // microseconds since 1970
	prev, hash string
	line       string
}

// linkOf reads a line, if it is one.
func linkOf(line string) (l link, ok bool) {
	l.line = line
	head, hash, isHashed := cutLast(line, beforeHash)
	_, prev, isChained := cutLast(head, beforePrev)
	head, isNamed := strings.CutPrefix(head, beforeNode)
	node, rest, isNumbered := strings.Cut(head, beforeSeq)
	seq, rest, isTimed := strings.Cut(rest, beforeAt)
	at, _, isWhole := strings.Cut(rest, `"`)
	if !isHashed || !isChained || !isNamed || !isNumbered || !isTimed || !isWhole {
		return l, false
	}
	var closed, quoted bool
	l.node = node
	l.hash, closed = strings.CutSuffix(hash, lineEnd)
	l.prev, quoted = strings.CutSuffix(prev, `"`)
	number, noNumber := strconv.ParseInt(seq, 10, 64)
	when, noTime := time.Parse(time.RFC3339Nano, at)
	l.seq, l.at = number, when.UnixMicro()
	return l, closed && quoted && noNumber == nil && noTime == nil
}

func cutLast(text, around string) (before, after string, found bool) {
	at := strings.LastIndex(text, around)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(around):], true
}

// isSound tells whether the line is what its hash was made of.
func (l *link) isSound() bool {
	end := len(l.line) - len(l.hash) - len(lineEnd)
	over := sha256.New()
	_, _ = over.Write([]byte(l.line[:end])) // never fails
	_, _ = over.Write([]byte(lineEnd))
	return hex.EncodeToString(over.Sum(nil)) == l.hash
}

// decoded is the whole entry.
func decoded(line string) (e Entry, err error) {
	err = json.Unmarshal([]byte(line), &e)
	return e, err
}

// sign puts an entry's hash into its line, which was written without it, and ends
// the line.
func sign[T text](out []byte, hash T) []byte {
	return append(append(append(out[:len(out)-len(lineEnd)], hash...), lineEnd...), '\n')
}
