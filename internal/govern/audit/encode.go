package audit

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// entryEnd follows the hash in the JSON of an entry.
const entryEnd = `"}`

// appendUnsigned writes the text that the hash of an entry is made of: its JSON with
// an empty hash. It is the text that encoding/json writes, in a fraction of the time:
// every call is an entry.
func (e *Entry) appendUnsigned(out []byte) []byte {
	out = appendText(out, `{"node":`, e.Node)
	out = strconv.AppendInt(append(out, `,"seq":`...), e.Seq, 10)
	out = e.At.UTC().AppendFormat(append(out, `,"at":"`...), time.RFC3339Nano)
	out = appendText(out, `","who":`, e.Who)
	out = appendOptional(out, `,"name":`, e.Name)
	out = appendOptional(out, `,"org":`, e.Org)
	out = appendOptional(out, `,"for":`, e.For)
	out = appendOptional(out, `,"by":`, e.By)
	out = appendOptional(out, `,"grant":`, e.Grant)
	out = appendOptional(out, `,"client":`, e.Client)
	out = appendOptional(out, `,"agent":`, e.Agent)
	out = appendOptional(out, `,"trace":`, e.Trace)
	out = appendOptional(out, `,"request":`, e.Request)
	out = appendText(out, `,"action":`, e.Action)
	out = appendText(out, `,"subject":`, e.Subject)
	out = appendOptional(out, `,"args":`, e.Args)
	out = appendOptional(out, `,"decision":`, e.Decision)
	out = appendOptional(out, `,"rule":`, e.Rule)
	out = strconv.AppendInt(append(out, `,"size":`...), e.Size, 10)
	out = appendOptional(out, `,"error":`, e.Error)
	out = strconv.AppendInt(append(out, `,"took_us":`...), e.Took, 10)
	if e.Redacted {
		out = append(out, `,"redacted":true`...)
	}
	out = appendText(out, `,"prev":`, e.Prev)
	return append(out, `,"hash":"`+entryEnd...)
}

// sign puts the hash into the JSON of an entry that was written without it.
func sign(unsigned []byte, hash string) string {
	return string(append(append(unsigned[:len(unsigned)-len(entryEnd)], hash...), entryEnd...))
}

// isSigned reports whether the hash in the JSON of an entry is the hash of its text.
func isSigned(text, hash string) bool {
	unsigned, ok := strings.CutSuffix(text, hash+entryEnd)
	return ok && Digest([]byte(unsigned+entryEnd)).String() == hash
}

func decode(text string) (e Entry, err error) {
	err = json.Unmarshal([]byte(text), &e)
	return e, err
}

// appendOptional leaves out an empty text.
func appendOptional(out []byte, key, text string) []byte {
	if text == "" {
		return out
	}
	return appendText(out, key, text)
}

// unescaped are the characters that encoding/json writes as they are.
var unescaped = func() (set [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		set[c] = !strings.ContainsRune(`"\<>&`, rune(c))
	}
	return set
}()

// appendText writes a member. Text with other characters is left to encoding/json.
func appendText(out []byte, key, text string) []byte {
	out = append(out, key...)
	for i := range len(text) {
		if !unescaped[text[i]] {
			raw, _ := json.Marshal(text) // strings always encode
			return append(out, raw...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}
