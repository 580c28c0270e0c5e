package db

import (
	"slices"
	"strings"
	"testing"
)

// A notification that was sent twice, because the server's reply was slow, is received
// once, whichever process sent it.
func TestNotificationsAreReceivedOnce(t *testing.T) {
	t.Parallel()
	b := &broker{subscribers: map[*subscriber]struct{}{}}
	r, in := &pgCarrier{broker: b}, inbox{parts: map[string][]string{}, last: map[string]uint64{}}
	s := b.subscribe("t")
	long := strings.Repeat("x", 2*maxFrame+1)
	first := slices.Concat(encode("a.1", note{"t", "one"}), encode("a.2", note{"t", long}))
	for _, frames := range [][]string{first, first, encode("b.1", note{"t", "other"}), encode("a.3", note{"t", "three"}), first} {
		for _, frame := range frames {
			r.decode(in, frame)
		}
	}
	var got []string
	for _, n := range b.take(s) {
		got = append(got, n.Payload)
	}
	if want := []string{"one", long, "other", "three"}; !slices.Equal(got, want) {
		t.Errorf("received %.80q, want %.80q", got, want)
	}
	if len(in.parts) != 0 {
		t.Errorf("parts are left of %d notes", len(in.parts))
	}
}
