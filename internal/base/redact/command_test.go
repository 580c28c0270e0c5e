package redact

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                   "npx",
		"-y|@scope/server|/home/me/notes":    "npx -y @scope/server /home/me/notes",
		"--token=abc|x":                      "npx --token=[redacted] x",
		"--token|abc|x":                      "npx --token [redacted] x",
		"--token|--verbose|x":                "npx --token --verbose x",
		"--api-key|k|--port|8080":            "npx --api-key [redacted] --port 8080",
		"GITHUB_TOKEN=abc|MODE=fast":         "npx GITHUB_TOKEN=[redacted] MODE=fast",
		"--header|Authorization: Bearer abc": "npx --header 'Authorization: [redacted]'",
		"--header=X-Api-Key: abc":            "npx '--header=X-Api-Key: [redacted]'",
		"postgres://u:p@h/db?x=1":            "npx postgres://u:xxxxx@h/db?…",
		"--url=https://h/mcp?key=1":          "npx --url=https://h/mcp?…",
		"ghp_0123456789abcdef":               "npx [redacted]",
		"0123456789abcdef0123456789abcdef01": "npx [redacted]",
		"it's here":                          `npx 'it'\''s here'`,
		"--max-tokens=5":                     "npx --max-tokens=[redacted]", // rather too much than too little
	} {
		var list []string
		if args != "" {
			list = strings.Split(args, "|")
		}
		if got := Command("npx", list); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	if got := Command("x", []string{strings.Repeat("long ", 200)}); len(got) > longestCommand+10 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"listening on port 3000":                        "listening on port 3000",
		"GITHUB_TOKEN: not set":                         "GITHUB_TOKEN: not set",
		"GITHUB_TOKEN=abc is wrong":                     "GITHUB_TOKEN=[redacted] is wrong",
		`{"apiKey": "k1","mode":"fast"}`:                `{"apiKey": "[redacted]","mode":"fast"}`,
		"Authorization: Bearer abc1":                    "Authorization: Bearer [redacted]",
		"cannot reach https://u:p@h.example/x?key=1":    "cannot reach https://u:[redacted]@h.example/x?key=1",
		"failed: password=hunter2x":                     "failed: password=[redacted]",
		"see https://h.example/x":                       "see https://h.example/x",
		"bad key sk-0123456789abcdef.":                  "bad key [redacted].",
		"Error: Cannot find module '/a/b/c-d/index.js'": "Error: Cannot find module '/a/b/c-d/index.js'",
	} {
		if got := Text(line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
