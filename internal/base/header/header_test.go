package header

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	var r Reader
	heed := func(key, _ string) Verdict {
		switch key {
		case "Secret":
			return Skip
		case "Strange":
			return Odd
		}
		return Keep
	}
	for range 3 { // from the second time on names and lines are known
		got, ok := r.Read("a-b: 1\r\nSECRET: x\r\nA-B:\t2 \r\nempty:\r\n\r\n", heed)
		want := http.Header{"A-B": {"1", "2"}, "Empty": {""}}
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%v %v, want %v", got, ok, want)
		}
		got = http.Header{}
		ok = r.Scan([]byte("a-b: 1\r\nA-B:\t2 \r\nempty:\r\n\r\n"), func(key, value string) Verdict {
			got.Add(key, value)
			return Keep
		})
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("scanned: %v %v, want %v", got, ok, want)
		}
	}
	for _, odd := range []string{"", "a: b", "a: b\r\n", "a\r\n\r\n", " a: b\r\n\r\n", "a b: c\r\n\r\n", ": c\r\n\r\n", "a: \x00\r\n\r\n", "a: b\nc: d\r\n\r\n", "strange: a\r\n\r\n"} {
		if got, ok := r.Read(odd, heed); ok {
			t.Errorf("%q is %v", odd, got)
		}
		if r.Scan([]byte(odd), heed) {
			t.Errorf("%q can be scanned", odd)
		}
	}
}

// Nobody can make us remember without end.
func TestNamesAreFew(t *testing.T) {
	t.Parallel()
	var r Reader
	for i := range 10 * mostNames {
		line := fmt.Sprintf("x%d: y\r\n\r\n", i)
		got, ok := r.Read(line, func(string, string) Verdict { return Keep })
		if _, there := got[fmt.Sprintf("X%d", i)]; !ok || !there {
			t.Errorf("%q is %v", line, got)
		}
	}
	if len(r.names) > mostNames {
		t.Errorf("%d names are remembered", len(r.names))
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value   string
		before, said int64
		want         Verdict
	}{
		{"Content-Length", "7", -1, 7, Keep},
		{"Content-Length", "7", 7, 7, Odd},
		{"Content-Length", "+7", -1, -1, Odd},
		{"Connection", "Keep-Alive", -1, -1, Keep},
		{"Connection", "close", -1, -1, Odd},
		{"Transfer-Encoding", "identity", -1, -1, Odd},
		{"Content-Type", "text/plain", -1, -1, Keep},
	} {
		length := c.before
		if got := Frames(c.key, c.value, &length); got != c.want || length != c.said {
			t.Errorf("%s: %s after %d is %d with %d, want %d with %d", c.key, c.value, c.before, got, length, c.want, c.said)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "007": 7, "999999": 999999, "1000000": -1, "": -1, "+1": -1, "1 ": -1, "0x1": -1, "-0": -1} {
		if got := Number(text); got != want {
			t.Errorf("Number(%q) is %d, want %d", text, got, want)
		}
	}
}

func TestLength(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "a\r\n": 0, "a\n\n": 0, "a\r\n\r\n": 5, "a\r\nb\r\n\r\nc\r\n\r\n": 8} {
		if got := Length([]byte(text)); got != want {
			t.Errorf("Length(%q) is %d, want %d", text, got, want)
		}
	}
}
