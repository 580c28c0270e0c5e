package clientfile_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

func parse(t *testing.T, text string) ([]upstream.Spec, []string, error) {
	t.Helper()
	env := map[string]string{"TOKEN": "s3cret", "EMPTY": "", "HOST": "example.test"}
	servers, err := clientfile.Parse([]byte(text), clientfile.SourceOf("servers.json", ""))
	specs, warnings := clientfile.Specs(servers, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	return specs, warnings, err
}

func TestParseOfEveryClient(t *testing.T) {
	t.Parallel()
	specs, warnings, err := parse(t, "\ufeff"+`{
		// as Claude Code writes it
		"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "server", 7,], "env": {"A": "${TOKEN}", "N": 1}, "cwd": "/srv"},
			"remote": {"type": "streamable-http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
			"old": {"type": "sse", "url": "http://127.0.0.1:1/sse", "timeout": 30, "disabledTools": ["rm"]},
			"off": {"command": "x", "disabled": true},
			"off too": {"command": "x", "enabled": false},
			"my server!": {"url": "http://127.0.0.1:1", "timeout": 1500, "allowedTools": ["a"]}, /* trailing */
		},
	}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []upstream.Spec{
		{Name: "files", Settings: upstream.Settings{Command: "npx", Args: []string{"-y", "server", "7"}, Env: map[string]string{"A": "s3cret", "N": "1"}, Cwd: "/srv"}},
		{Name: "remote", Settings: upstream.Settings{URL: "https://example.test/mcp", Transport: "http", Headers: map[string]string{"Authorization": "Bearer s3cret"}}},
		{Name: "old", Settings: upstream.Settings{URL: "http://127.0.0.1:1/sse", Transport: "sse", Timeout: duration.Duration(30 * time.Second), DisabledTools: []string{"rm"}}},
		{Name: "my_server_", Settings: upstream.Settings{URL: "http://127.0.0.1:1", Timeout: duration.Duration(1500 * time.Millisecond), AllowedTools: []string{"a"}}},
	}
	if !reflect.DeepEqual(specs, want) {
		t.Errorf("specs = %+v\nwant    %+v", specs, want)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "my_server_") {
		t.Errorf("warnings = %q", warnings)
	}
}

func TestParseOfVSCode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"servers": {"gh": {"type": "http", "url": "https://x.test/mcp"}}, "inputs": []}`,
		`{"mcp": {"servers": {"gh": {"type": "http", "url": "https://x.test/mcp"}}}}`,
	} {
		specs, warnings, err := parse(t, text)
		if err != nil || len(warnings) != 0 || len(specs) != 1 || specs[0].URL != "https://x.test/mcp" {
			t.Errorf("%s: %+v, %q, %v", text, specs, warnings, err)
		}
	}
}

func TestParseExpands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"${HOST}":                    "example.test",
		"${HOST:-other}":             "example.test",
		"${MISSING:-other}":          "other",
		"${MISSING:-}":               "",
		"${EMPTY:-other}":            "other",
		"${EMPTY}":                   "",
		"${env:HOST}":                "example.test",
		"$HOST":                      "$HOST",
		"a${HOST}b${HOST}":           "aexample.testbexample.test",
		"${unclosed":                 "${unclosed",
		"${MISSING}":                 "${MISSING} (warned)",
		"${env:MISSING}":             "${env:MISSING} (warned)",
		"${input:key}":               "${input:key} (warned)",
		"${workspaceFolder}/${HOST}": "${workspaceFolder}/example.test (warned)",
	} {
		specs, warnings, err := parse(t, `{"mcpServers":{"a":{"command":"c","args":["`+text+`"]}}}`)
		if err != nil {
			t.Fatal(err)
		}
		got := specs[0].Args[0]
		if len(warnings) > 0 {
			got += " (warned)"
		}
		if got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		if strings.Contains(strings.Join(warnings, ""), "s3cret") {
			t.Errorf("warnings tell a secret: %q", warnings)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                              "read servers",
		`{"mcpServers":[]}`:             "no object mcpServers",
		`{"mcpServers":{"a":{"url":"x"`: "unexpected end",
		`{"mcpServers": /* {"a":1}`:     "has no end",
	} {
		_, _, err := parse(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// An invalid entry does not affect the others.
func TestParseIgnoresInvalidEntries(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{}`:                       "neither url nor command",
		`{"url":"http://u:s3@h/"}`: "user or password",
	} {
		specs, warnings, err := parse(t, `{"mcpServers":{"bad":`+entry+`,"good":{"command":"c"}}}`)
		if err != nil || len(specs) != 1 || specs[0].Name != "good" {
			t.Errorf("%s: %v, %v", entry, specs, err)
		}
		if text := strings.Join(warnings, "\n"); !strings.Contains(text, want) || !strings.Contains(text, "bad") || strings.Contains(text, "s3") {
			t.Errorf("%s: warnings %q, want %q", entry, text, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"c","args":["${X:-y}"],},},} // x`))
	f.Add([]byte(`{"servers":{"a b":{"url":"http://h","timeout":"3s","env":{"a":null}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, err := clientfile.Parse(data, clientfile.SourceOf("servers.json", ""))
		if err != nil {
			return
		}
		specs, _ := clientfile.Specs(servers, func(string) (string, bool) { return "", false })
		for _, spec := range specs {
			if err := spec.Validate(); err != nil {
				t.Fatalf("%q gave %+v: %v", data, spec, err)
			}
		}
	})
}
