package yamltext_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/yamltext"
)

func TestDecodeKeepsOrderAndSpelling(t *testing.T) {
	t.Parallel()
	text := "z: 1.10\na: 2024-05-06\nlist: [yes, 0x10, ~, 1e3]\n200: &same {b: 'true'}\ncopy: *same\n"
	got, err := yamltext.Decode([]byte(text), 1000)
	want := `{"z":1.10,"a":"2024-05-06","list":["yes",16,null,1e3],"200":{"b":"true"},"copy":{"b":"true"}}`
	if err != nil || string(got) != want {
		t.Errorf("decoded %s, error %v, want %s", got, err, want)
	}
}

func TestDecodeHasLimits(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x]\n"
	for _, step := range []string{"b: &b [*a, *a, *a, *a, *a, *a, *a, *a]", "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]", "d: [*c, *c, *c, *c, *c, *c, *c, *c]"} {
		bomb += step + "\n"
	}
	// What aliases repeat is bounded long before the limit of the caller.
	if got, err := yamltext.Decode([]byte(strings.Replace(bomb, "[x,", "["+strings.Repeat("y", 2000)+",", 1)+"e: ["+strings.Repeat("*c, ", 20)+"*c]\n"), 64<<20); err == nil {
		t.Errorf("a document of some KiB is %d bytes", len(got))
	}
	for _, text := range []string{bomb, strings.Repeat("[", 200) + strings.Repeat("]", 200), "a: 1\n---\nb: 2\n", "a: [", "- a list"} {
		if got, err := yamltext.Decode([]byte(text), 1000); err == nil {
			t.Errorf("%.40q is %s", text, got)
		}
	}
}
