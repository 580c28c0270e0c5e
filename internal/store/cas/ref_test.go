package cas_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

// The hash of nothing, from the BLAKE3 paper's test vectors.
const empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

func TestSum(t *testing.T) {
	t.Parallel()
	if got := cas.Sum(nil); got.String() != empty || got.URI() != "cas:"+empty || got.Short() != empty[:12] {
		t.Errorf("Sum(nil) = %s", got)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{empty, "cas:" + empty, "cas://" + empty, strings.ToUpper(empty)} {
		if got, err := cas.Parse(s); err != nil || got.String() != empty {
			t.Errorf("Parse(%q) = %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "cas:", empty[1:], empty + "0", "CAS:" + empty, strings.Repeat("g", 64), "cas:cas:" + empty, "//" + empty, "cas:/" + empty} {
		_, err := cas.Parse(s)
		if fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("Parse(%q) = %v, want invalid_params with a hint", s, err)
		}
	}
}

func TestRefInJSON(t *testing.T) {
	t.Parallel()
	type script struct {
		Hash   cas.Ref
		Parent cas.Ref
	}
	raw, err := json.Marshal(script{Hash: cas.Sum(nil)})
	if want := `{"Hash":"` + empty + `","Parent":""}`; err != nil || string(raw) != want {
		t.Fatalf("wrote %s (%v), want %s", raw, err, want)
	}
	var back script
	if err := json.Unmarshal(raw, &back); err != nil || back.Hash != cas.Sum(nil) || !back.Parent.IsZero() {
		t.Errorf("read back %+v (%v)", back, err)
	}
	if err := json.Unmarshal([]byte(`{"Hash":"nonsense"}`), &back); err == nil {
		t.Error("read nonsense without error")
	}
}

func TestLongStringIsClipped(t *testing.T) {
	t.Parallel()
	_, err := cas.Parse(strings.Repeat("x", 1<<20))
	if n := len(err.Error()); n > 300 {
		t.Errorf("the message has %d bytes", n)
	}
}

// matcher is a store in which everything matches.
type matcher []cas.Ref

func (m matcher) Match(context.Context, string, int) ([]cas.Ref, error) { return m, nil }

func TestAmbiguousPrefix(t *testing.T) {
	t.Parallel()
	a, b := cas.Sum([]byte("a")), cas.Sum([]byte("b"))
	_, err := cas.Resolve(t.Context(), matcher{a, b}, "0123456789ab")
	hint := fault.HintOf(err)
	if fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(hint, a.String()) || !strings.Contains(hint, b.String()) {
		t.Errorf("Resolve = %v, hint %q; want invalid_params with both candidates", err, hint)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", empty, "cas:" + empty, empty[:12], "cas:" + empty[:13], "ABCDEFabcdef", "é" + empty[2:]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := cas.Parse(s)
		if err != nil {
			return
		}
		back, err := cas.Parse(ref.URI())
		if err != nil || back != ref {
			t.Errorf("Parse(%q) = %s, which reads back as %s, %v", s, ref, back, err)
		}
		if prefix, err := cas.ParsePrefix(s); err != nil || prefix != ref.String() {
			t.Errorf("ParsePrefix(%q) = %q, %v; want %s", s, prefix, err, ref)
		}
	})
}
