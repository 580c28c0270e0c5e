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

func TestSetFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, value, want string }{
		{"", "true", "k = true\n"},
		{"x = 1\n[s]\nk = 1\n", "true", "k = true\nx = 1\n[s]\nk = 1\n"},
		{"# mine\n# all\n\n[s]\n", `"a"`, "# mine\n# all\n\nk = \"a\"\n[s]\n"},
		{"# of s\n[s]\n", "1", "k = 1\n# of s\n[s]\n"},
		{"x = 1\nk = 2 # why\n", "3", "x = 1\nk = 3 # why\n"},
		{"x = 1\nk = 2 # why\n", "null", "x = 1\n"},
	} {
		got, err := toml.SetFirst([]byte(c.text), "k", []byte(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%q became\n%q, %v; want\n%q", c.text, got, err, c.want)
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	type rule struct {
		Do string `toml:"do"`
	}
	for _, c := range []struct{ text, want string }{
		{"", "[[r]]\ndo = 'a'\n"},
		{"x = 1\n", "x = 1\n\n[[r]]\ndo = 'a'\n"},
		{"x = 1\n\n# first\n[[r]]\ndo = 'b'\n", "x = 1\n\n[[r]]\ndo = 'a'\n\n# first\n[[r]]\ndo = 'b'\n"},
	} {
		got, err := toml.InsertEntry([]byte(c.text), "r", rule{"a"})
		if err != nil || string(got) != c.want {
			t.Errorf("%q became\n%q, %v; want\n%q", c.text, got, err, c.want)
		}
	}
	const three = "[[r]]\ndo = 'a'\n\n# second\n[[r]]\ndo = 'b'\n\n[s]\nx = 1\n"
	for number, want := range []string{"# second\n[[r]]\ndo = 'b'\n\n[s]\nx = 1\n", "[[r]]\ndo = 'a'\n\n# second\n[s]\nx = 1\n"} {
		if got, err := toml.CutEntry([]byte(three), "r", number); err != nil || string(got) != want {
			t.Errorf("without %d: %q, %v; want %q", number, got, err, want)
		}
	}
	if _, err := toml.CutEntry([]byte("r = [{do = 'a'}]\n"), "r", 0); !errors.Is(err, toml.ErrNoHeader) {
		t.Errorf("inline: %v", err)
	}
}
