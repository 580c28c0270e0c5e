package toml_test

import (
	"errors"
	"testing"

	"github.com/luanette/luanette/internal/config/toml"
)

func TestSetValue(t *testing.T) {
	t.Parallel()
	const list, table = `["a", "b"]`, `{"x": "y z"}`
	for _, c := range []struct{ text, value, want string }{
		{"[s.a]\nx = 1\n", list, "[s.a]\nk = [\"a\", \"b\"]\nx = 1\n"},
		{"[s.a]", list, "[s.a]\nk = [\"a\", \"b\"]\n"},
		{"[s.a]\n# why\nk = [\n 'a', # one\n]\n\n# of x\nx = 1\n[t]\n", list, "[s.a]\n# why\nk = [\"a\", \"b\"]\n\n# of x\nx = 1\n[t]\n"},
		{"[s.a]\nx = 1\nk = \"a # 'b\\\"\"  # why\ny = 1\n", "true", "[s.a]\nx = 1\nk = true  # why\ny = 1\n"},
		{"[s]\na.k = 1\n\n[s.a.b]\n\n[s.a]\nx = 1\n", "2", "[s]\n\n[s.a.b]\n\n[s.a]\nk = 2\nx = 1\n"},
		{"[s.a]\nk.old = 1\nx = 1\nk.other = 2\n", table, "[s.a]\nk = {x = \"y z\"}\nx = 1\n"},
		{"[s.a]\nx = 1\n\n[s.a.k]\nold = 1\n\n[t]\ny = 1\n", table, "[s.a]\nk = {x = \"y z\"}\nx = 1\n\n[t]\ny = 1\n"},
		{"[s.a]\nk = 1\nx = '''\nk = 2\n'''\n", "null", "[s.a]\nx = '''\nk = 2\n'''\n"},
		{"[s.a]\r\nx = 1\r\n", "true", "[s.a]\r\nk = true\r\nx = 1\r\n"},
	} {
		got, err := toml.SetValue([]byte(c.text), []string{"s", "a"}, "k", []byte(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%q became\n%q, %v; want\n%q", c.text, got, err, c.want)
		}
	}
	if _, err := toml.SetValue([]byte("[s]\na = {x = 1}\n"), []string{"s", "a"}, "k", []byte("1")); !errors.Is(err, toml.ErrNoHeader) {
		t.Errorf("inline table: %v", err)
	}
}
