package clientfile

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/rawjson"
)

const ours = `{"command":"luanette","args":["stdio"]}`

func TestSetAndCut(t *testing.T) {
	t.Parallel()
	servers := []string{"mcpServers", "luanette"}
	entry := "\"luanette\": {\n      \"command\": \"luanette\",\n      \"args\": [\n        \"stdio\"\n      ]\n    }"
	for _, test := range []struct {
		name         string
		syntax       Syntax
		path         []string
		before, want string
		cut          string // the text after the entry is removed again, if it is not before
	}{
		{"empty file", JSON, servers, "", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}\n", "{\n  \"mcpServers\": {}\n}\n"},
		{"empty object", JSON, servers, "{}", "{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}", "{\n  \"mcpServers\": {}\n}"},
		{"beside another", JSON, servers, "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"} // see\n  },\n  \"theme\": \"dark\"\n}\n",
			"{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // see\n    " + entry + "\n  },\n  \"theme\": \"dark\"\n}\n", ""},
		{"trailing comma", JSON, servers, "{\n  \"mcpServers\": {\n    \"a\": {},\n  },\n}",
			"{\n  \"mcpServers\": {\n    \"a\": {},\n    " + entry + ",\n  },\n}", ""},
		{"one line", JSON, servers, `{"mcpServers":{"a":{}}}`, `{"mcpServers":{"a":{}, "luanette": ` + ours + `}}`, ""},
		{"tabs and CRLF", JSON, servers, "{\r\n\t\"theme\": 1\r\n}\r\n",
			"{\r\n\t\"theme\": 1,\r\n\t\"mcpServers\": {\r\n\t\t\"luanette\": {\r\n\t\t\t\"command\": \"luanette\",\r\n\t\t\t\"args\": [\r\n\t\t\t\t\"stdio\"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n", "{\r\n\t\"theme\": 1,\r\n\t\"mcpServers\": {}\r\n}\r\n"},
		{"byte order mark", JSON, servers, "\ufeff{\n  \"mcpServers\": {}\n}", "\ufeff{\n  \"mcpServers\": {\n    " + entry + "\n  }\n}", ""},
		{"codex", TOML, []string{"mcp_servers", "luanette"}, "# my settings\nmodel = \"x\"\n\n[mcp_servers.a]\ncommand = \"b\"\n",
			"# my settings\nmodel = \"x\"\n\n[mcp_servers.a]\ncommand = \"b\"\n\n[mcp_servers.luanette]\ncommand = \"luanette\"\nargs = [\"stdio\"]\n", ""},
		{"codex, CRLF and mark", TOML, []string{"mcp_servers", "luanette"}, "\ufeffmodel = \"x\"\r\n",
			"\ufeffmodel = \"x\"\r\n\r\n[mcp_servers.luanette]\r\ncommand = \"luanette\"\r\nargs = [\"stdio\"]\r\n", ""},
		{"goose", YAML, []string{"extensions", "luanette"}, "# mine\nextensions:\n  a: # first\n    cmd: x\n\n# other\nGOOSE_MODEL: y\n",
			"# mine\nextensions:\n  a: # first\n    cmd: x\n  luanette:\n    command: luanette\n    args:\n      - stdio\n\n# other\nGOOSE_MODEL: y\n", ""},
		{"goose without extensions", YAML, []string{"extensions", "luanette"}, "GOOSE_MODEL: y", "GOOSE_MODEL: y\nextensions:\n  luanette:\n    command: luanette\n    args:\n      - stdio\n", "GOOSE_MODEL: y\nextensions: {}\n"},
		{"goose with no extension", YAML, []string{"extensions", "luanette"}, "extensions: {}\nGOOSE_MODEL: y\n", "extensions:\n  luanette:\n    command: luanette\n    args:\n      - stdio\nGOOSE_MODEL: y\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.syntax.Set([]byte(test.before), test.path, json.RawMessage(ours))
			if err != nil || string(got) != test.want {
				t.Fatalf("set: %v\n%s\nwant\n%s", err, got, test.want)
			}
			again, err := test.syntax.Set(got, test.path, json.RawMessage(ours))
			if err != nil || string(again) != test.want {
				t.Errorf("set twice: %v\n%s", err, again)
			}
			want := test.cut
			if want == "" {
				want = test.before
			}
			if got, err = test.syntax.Cut(got, test.path); err != nil || string(got) != want {
				t.Errorf("cut: %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestCutKeepsTheOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		syntax       Syntax
		path         string
		before, want string
	}{
		{JSON, "s/a", "{\"s\": {\n  // first\n  \"a\": 1, // gone\n  \"b\": 2 // stays\n}}", "{\"s\": {\n  // first\n  \"b\": 2 // stays\n}}"},
		{JSON, "s/b", "{\"s\": {\n  \"a\": 1, // stays\n  \"b\": 2\n}}", "{\"s\": {\n  \"a\": 1 // stays\n}}"},
		{JSON, "s/a", `{"s": {"a": 1, "b": 2, "a": 3}}`, `{"s": {"b": 2}}`},
		{JSON, "s/x", `{"s": {"a": 1}}`, `{"s": {"a": 1}}`},
		{TOML, "s/a", "[s.a]\nx = \"\"\"\n[s.b]\n\"\"\"\n[s.a.env]\nK = 1\n\n# of b\n[s.b]\ny = 1\n", "# of b\n[s.b]\ny = 1\n"},
		{YAML, "s/a", "s:\n  a:\n    x: |\n      text\n\n      more\n  # of b\n  b: {y: 1}\n", "s:\n  # of b\n  b: {y: 1}\n"},
		{YAML, "s/a", "s:\n- name: a\n  args:\n  - x\n- name: b\nt: 1\n", "s:\n- name: b\nt: 1\n"},
		{YAML, "s/b", "s:\n  - name: a\n  - command: y\n    name: b\n", "s:\n  - name: a\n"},
	} {
		got, err := test.syntax.Cut([]byte(test.before), strings.Split(test.path, "/"))
		if err != nil || string(got) != test.want {
			t.Errorf("%s without %s: %v\n%s\nwant\n%s", test.before, test.path, err, got, test.want)
		}
	}
}

func TestUnsafeEditsAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		syntax       Syntax
		text, reason string
	}{
		{JSON, "{\n\"s\": {,}\n}", "line 2"},
		{JSON, "{\n/* \n", "line 2: the comment has no end"},
		{JSON, "[]", "line 1: it is not an object"},
		{TOML, "a = 1\nb = \n", "line 2"},
		{TOML, "s = { x = { command = \"y\" } }\n", "cannot be edited"},
		{YAML, "a: 1\n b: 2\n", "line 2"},
		{YAML, "s: {x: {cmd: y}}\n", "cannot be edited"},
		{YAML, "a: 1\n---\nb: 1\n", "several documents"},
	} {
		_, err := test.syntax.Set([]byte(test.text), []string{"s", "x"}, json.RawMessage(ours))
		if err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: %v, want %q", test.text, err, test.reason)
		}
	}
}

// FuzzEdit edits arbitrary text: an edit that is not refused adds the entry, and
// removing it leaves what was there.
func FuzzEdit(f *testing.F) {
	f.Add("{\"mcpServers\": {\"a\": {}, /* x */ }, // y\n}", "a", uint8(0))
	f.Add("{\n\t\"x\": [1, {\"mcpServers\": 1}],\r\n\t\"mcpServers\": null}", "b\"", uint8(0))
	f.Add("[mcpServers.a]\nb = '''\n[x]\n'''\n# c\n[[y]]\n", "a", uint8(1))
	f.Add("mcpServers:\n  a: {b: c}\n  'q r':\n  - x\nd: |\n  e\n", "q r", uint8(2))
	f.Add("mcpServers:\n- name: a\n  b: c\n- name: d\n", "d", uint8(2))
	f.Fuzz(func(t *testing.T, text, name string, kind uint8) {
		syntax := []Syntax{JSON, TOML, YAML}[kind%3]
		path := []string{"mcpServers", name}
		before, err := syntax.Decode([]byte(text))
		if err != nil {
			return
		}
		added, err := syntax.Set([]byte(text), path, json.RawMessage(ours))
		if err != nil {
			if syntax == JSON && rawjson.IsObject(before) && utf8.ValidString(name) {
				t.Fatalf("%q: %v", text, err) // JSON can always be edited
			}
			return // refused
		}
		cut, err := syntax.Cut(added, path)
		if err != nil {
			return
		}
		after, err := syntax.Decode(cut)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, cut, err)
		}
		var was, is any
		if unmarshal(before, &was) != nil || unmarshal(after, &is) != nil {
			t.Fatal("not JSON")
		}
		servers, _ := is.(map[string]any)["mcpServers"].(map[string]any)
		if _, still := servers[name]; still {
			t.Fatalf("%q still has %q", cut, name)
		}
		delete(is.(map[string]any), "mcpServers")
		delete(was.(map[string]any), "mcpServers")
		if a, b := encoded(t, was), encoded(t, is); a != b {
			t.Fatalf("%q: %s became %s", text, a, b)
		}
	})
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
