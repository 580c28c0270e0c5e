package audit

import (
	"encoding/json"
	"testing"
	"testing/quick"
	"time"
)

// The hashed text is what encoding/json writes, so that others can check an export.
func TestHashIsOfTheJSON(t *testing.T) {
	t.Parallel()
	same := func(e Entry, micros int64) bool {
		e.At, e.Hash = time.UnixMicro(micros%(1<<50)).UTC(), ""
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got := string(e.appendUnsigned(nil))
		if got != string(want) {
			t.Logf("got  %s\nwant %s", got, want)
		}
		return got == string(want)
	}
	whole := Entry{Node: "a", Seq: 1, Who: "who", Name: "n", Org: "o", For: "f", By: "b", Grant: "g-1", Client: "c", Agent: "a 1", Trace: "t", Request: "r", Action: "call", Subject: "ns.tool",
		Args: "ab", Decision: "allow", Rule: "<rule & \"quoted\">", Size: 5, Error: "x\x00\x7f\u2028é", Took: 7, Redacted: true, Prev: "p"}
	for _, e := range []Entry{{}, whole} {
		if !same(e, 1_700_000_000_123_456) || !same(e, 1_700_000_000_000_000) {
			t.Error("not the same")
		}
	}
	arbitrary := func(texts [17]string, numbers [4]int64) bool {
		return same(Entry{Node: texts[0], Seq: numbers[0], Who: texts[1], Name: texts[2], Org: texts[12], For: texts[13], By: texts[15], Grant: texts[16], Client: texts[3], Agent: texts[14], Trace: texts[4],
			Request: texts[5], Action: texts[6], Subject: texts[7], Args: texts[8], Decision: texts[9], Rule: texts[10],
			Size: numbers[1], Error: texts[11], Took: numbers[2], Prev: texts[3]}, max(numbers[3], 0))
	}
	if err := quick.Check(arbitrary, nil); err != nil {
		t.Error(err)
	}
}
