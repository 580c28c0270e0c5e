package egress

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/luanette/luanette/internal/base/secret"
)

func masked(t *testing.T, s swaps, from io.Reader) string {
	t.Helper()
	ended := 0
	body := &maskedBody{ReadCloser: io.NopCloser(from), swaps: s, ended: func() { ended++ }}
	text, err := io.ReadAll(body)
	if err != nil || ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
	return string(text)
}

func TestMask(t *testing.T) {
	t.Parallel()
	s := swaps{{"PLACEHOLDER", "aab"}, {"LONG", "aabaac"}, {"x", "secret"}}
	for text, want := range map[string]string{
		"":                  "",
		"aab":               "PLACEHOLDER",
		"aaab":              "aPLACEHOLDER",
		"aaaab aab":         "aaPLACEHOLDER PLACEHOLDER",
		"aabaac":            "LONG",
		"secre":             "secre",
		"secrsecret secret": "secrx x",
		"aa":                "aa",
	} {
		if got := masked(t, s, strings.NewReader(text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"aaab secret": "aPLACEHOLDER x", "sesecret": "sex"} {
		if got := masked(t, s, iotest.OneByteReader(strings.NewReader(text))); got != want {
			t.Errorf("byte by byte %q becomes %q, want %q", text, got, want)
		}
	}
}

// Only what may be the beginning of a secret waits.
func TestMaskHoldsNothingElse(t *testing.T) {
	t.Parallel()
	s := swaps{{"x", "secret"}}
	for text, want := range map[string]string{"data: event\n\n": "data: event\n\n", "data: sec": "data: ", "s": "", "secrets": "x"} {
		ready, held := s.mask([]byte(text), false)
		if text == "secrets" && (string(ready) != "x" || string(held) != "s") || text != "secrets" && (string(ready) != want || string(ready)+string(held) != text) {
			t.Errorf("%q: %q is passed on, %q held", text, ready, held)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("xxsecretxxsecsecretretse"), 3)
	f.Add([]byte("secretsecretsecre"), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		s := swaps{{"[hide]", "secret"}}
		var got []byte
		var held []byte
		size = 1 + (size%7+7)%7
		for rest := data; ; {
			n := min(size, len(rest))
			ready, kept := s.mask(append(held, rest[:n]...), n == len(rest))
			got, held = append(got, ready...), kept
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		if want := bytes.ReplaceAll(data, []byte("secret"), []byte("[hide]")); !bytes.Equal(got, want) || len(held) > 0 {
			t.Errorf("%q in parts of %d becomes %q", data, size, got)
		}
	})
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for value, prefix := range map[string]string{"ghp_0123456789abcdefghijklmnopqrstuvwxyz": "ghp_", "xoxb-" + strings.Repeat("7", 40): "xoxb-", "ghp_short": "", "hunter2": "", strings.Repeat("a", 500): ""} {
		held, err := holdSecrets([]Secret{{Name: "s", Value: secret.New(value)}, {Name: "s", Value: secret.New(value)}})
		if err != nil {
			t.Fatal(err)
		}
		p := held[0].placeholder
		if !strings.HasPrefix(p, prefix) || len(p) != max(len(value), minRandom+len(prefix)) || strings.Contains(p, value) || p != held[1].placeholder {
			t.Errorf("%q stands for %q", p, value)
		}
	}
}
