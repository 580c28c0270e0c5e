package audit

import (
	"testing"
	"time"
)

// The hash of an entry is that of the JSON which every release writes for it.
func TestHashOfAnEntry(t *testing.T) {
	t.Parallel()
	e := Entry{
		At: time.UnixMicro(1_700_000_000_123_456), Who: "who", Name: "n", Org: "o", For: "f", By: "b", Grant: "g-1", Client: "c", Agent: "a 1", Trace: "t", Request: "r",
		Action: "call", Subject: "ns.tool", Args: "ab", Decision: "allow", Rule: "<rule & \"quoted\">", Size: 5, Error: "x\x00\x7f\u2028é\xff\xfe", Took: 7,
	}
	row := (&Chain{Node: "a", Hash: "p"}).append(&e)
	const want = `{"node":"a","seq":1,"at":"2023-11-14T22:13:20.123456Z","who":"who","name":"n","org":"o","for":"f","by":"b","grant":"g-1","client":"c","agent":"a 1","trace":"t","request":"r"` +
		`,"action":"call","subject":"ns.tool","args":"ab","decision":"allow","rule":"\u003crule \u0026 \"quoted\"\u003e"` +
		`,"size":5,"error":"x\u0000` + "\x7f" + `\u2028é�","took_us":7,"prev":"p","hash":"750e4fea92043dd83f1363c47bf7a1c15e04b54664b4cbd3ac5edfa27dfb2e5b"}`
	if row.entry != want || !isSigned(row.entry, e.Hash) {
		t.Errorf("got  %s\nwant %s", row.entry, want)
	}
}
