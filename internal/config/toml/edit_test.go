package toml_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/luanette/luanette/internal/config/toml"
)

func TestAppendObject(t *testing.T) {
	t.Parallel()
	object := `{"command":"a \"b\" \u0007/","list":["x",1,{"y":true}],"none":null,"env":{"K L":"v"}}`
	got := string(toml.AppendObject([]byte("a = 1"), []string{"s", "n m"}, []byte(object)))
	want := "a = 1\n\n[s.\"n m\"]\ncommand = \"a \\\"b\\\" \\u0007/\"\nlist = [\"x\", 1, {y = true}]\n\n[s.\"n m\".env]\n\"K L\" = \"v\"\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var read struct {
		S map[string]struct{ Command string }
	}
	if err := toml.Unmarshal([]byte(got), &read); err != nil || read.S["n m"].Command != "a \"b\" \a/" {
		t.Errorf("read %+v, %v", read, err)
	}
}

func TestCutTable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[s.a]\nx = 1\n":                                   "",
		"y = 1\n\n[s.a]\nx = 1\n\n\n":                      "y = 1\n",
		"[s.a]\nx = 1\n# of b\n[s.b]\n":                    "# of b\n[s.b]\n",
		"[s.a]\nx = 1\n\n[s.b]\n[ s . \"a\" .env]\nk = 1":  "[s.b]\n",
		"[s.b]\nx = '''\n[s.a]\n'''\n[s.a]\r\n# see\r\n":   "[s.b]\nx = '''\n[s.a]\n'''\r\n",
		"[s.a]\nx = '''\n[s.b]\n'''\n[t]\n":                "[t]\n",
		"[[s.a]]\nx = 1\n[[s.a]]\nx = 2\n[other]\ny = 1\n": "[other]\ny = 1\n",
	} {
		if got, err := toml.CutTable([]byte(text), "s", "a"); err != nil || string(got) != want {
			t.Errorf("%q became %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := toml.CutTable([]byte("s = {a = {x = 1}}\n"), "s", "a"); !errors.Is(err, toml.ErrNoHeader) {
		t.Errorf("an inline table: %v", err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := toml.Lines([]byte("s.a.x = 1\n\n[s]\nb = {y = 1}\n[s.c.env]\n[s.c]\n"), "s")
	if want := map[string]int{"a": 1, "b": 4, "c": 5}; !maps.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}
