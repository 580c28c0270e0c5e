package hub

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
)

func take(s *stream) string {
	return string(bytes.Join(s.take(s.reader).messages, []byte(" ")))
}

func TestStreamWithoutNameStoresNothing(t *testing.T) {
	t.Parallel()
	s := newStream("")
	s.send([]byte("a"))
	s.send([]byte("b"))
	if got := take(s); got != "a b" {
		t.Errorf("took %q", got)
	}
	if _, err := s.attachAfter(0); err == nil {
		t.Error("a stream without a name can be read again")
	}
}

func TestNamedStreamStoresTheLatest(t *testing.T) {
	t.Parallel()
	s := newStream("n")
	large := bytes.Repeat([]byte("x"), streamBytes/2)
	for range 4 {
		s.send(large)
		s.take(nil)
	}
	if _, err := s.attachAfter(0); err == nil {
		t.Error("all messages are stored")
	}
	old, err := s.attachAfter(3)
	if err != nil || len(take(s)) != len(large) {
		t.Errorf("the last message is not stored: %v", err)
	}
	if _, err := s.attachAfter(9); err == nil {
		t.Error("a message that was not sent yet can be read")
	}
	s.attach()
	s.send([]byte("new"))
	if b := s.take(old); len(b.messages) > 0 {
		t.Error("the replaced reader still reads")
	}
	<-old // closed
	if got := take(s); got != "new" {
		t.Errorf("the new reader took %q", got)
	}
}

func TestSlowReaderLosesOnlyNotifications(t *testing.T) {
	t.Parallel()
	s := newStream("")
	large := bytes.Repeat([]byte("x"), streamBytes+1)
	s.offer(large)
	s.offer([]byte("lost"))
	s.send([]byte("kept"))
	if got := take(s); strings.Contains(got, "lost") || !strings.HasSuffix(got, "kept") {
		t.Errorf("took %d bytes ending in %q", len(got), got[max(0, len(got)-9):])
	}
	s.end()
	s.send([]byte("late"))
	if b := s.take(nil); !b.ended || len(b.messages) != 0 {
		t.Errorf("after the end: %+v", b)
	}
}

func TestEventIDs(t *testing.T) {
	t.Parallel()
	if name, number, ok := parseEventID(eventID("12", 7)); name != "12" || number != 7 || !ok {
		t.Errorf("got %q %d %t", name, number, ok)
	}
	for _, id := range []string{"", "12", "12-", "12-x", "-"} {
		if _, _, ok := parseEventID(id); ok {
			t.Errorf("%q is no event id", id)
		}
	}
}

func TestProgressIsRateLimited(t *testing.T) {
	t.Parallel()
	var p progressLimit
	now := time.Unix(0, 0)
	admitted := 0
	for i := range 1000 { // in no time at all
		if p.admit(now, tool.Progress{Progress: float64(i), Total: 1000}, 20) {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("%d of 1000 reports at once, want the burst of 10", admitted)
	}
	if !p.admit(now, tool.Progress{Progress: 1000, Total: 1000}, 20) {
		t.Error("the last report was held back")
	}
	if p.admit(now.Add(time.Hour), tool.Progress{Progress: 999, Total: 1000}, 20) {
		t.Error("progress went backwards")
	}
}

func TestCanonicalIgnoresOrderAndSpace(t *testing.T) {
	t.Parallel()
	a, b := canonical([]byte(`{"x": 1.50, "a":[9007199254740993]}`)), canonical([]byte(`{"a":[9007199254740993],"x":1.50}`))
	if !bytes.Equal(a, b) {
		t.Errorf("%s is not %s", a, b)
	}
	if bytes.Equal(a, canonical([]byte(`{"a":[9007199254740992],"x":1.50}`))) {
		t.Error("different integers beyond 2^53 are equal")
	}
}
