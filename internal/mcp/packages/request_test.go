package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandsThatMeanNPX(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"npx pkg":                             "pkg||",
		"npx -y pkg a -y":                     "pkg||a -y",
		"npx --yes @scope/pkg@1.2.3 --port 3": "@scope/pkg@1.2.3||--port 3",
		"npx -y -- pkg@latest -- x":           "pkg@latest||-- x",
		"npx -y pkg@^1.2.0":                   "pkg@^1.2.0||",
		"npx -y -p pkg -p other@2 run x":      "pkg other@2|run|x",
		"npx --package=pkg run":               "pkg|run|",
		"/opt/node/bin/npx pkg":               "pkg||",
		"npx.cmd -y pkg":                      "pkg||",
		"cmd /c npx -y pkg x":                 "pkg||x",
		`C:\Windows\cmd.exe /C npx.cmd pkg`:   "pkg||",
		"npm exec -y pkg -- --port 3":         "pkg||--port 3",
		"npm x pkg":                           "pkg||",
		"npm exec -- pkg --port 3":            "pkg||--port 3",
		"node /usr/lib/node_modules/npm/bin/npx-cli.js -y pkg": "pkg||",
	} {
		words := strings.Fields(line)
		r, reason := Parse(Start{Command: words[0], Args: words[1:], Dir: t.TempDir()})
		if got := strings.Join([]string{strings.Join(r.Specs, " "), r.Bin, strings.Join(r.Args, " ")}, "|"); got != want || reason != "" {
			t.Errorf("%s means %s, %q; want %s", line, got, reason, want)
		}
	}
}

func TestCommandsThatRunAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for line, why := range map[string]string{
		"npx -c echo":                  "a line of a shell",
		"npx github:someone/pkg":       "is not a package of the registry",
		"npx someone/pkg":              "is not a package of the registry",
		"npx ./server":                 "is not a package of the registry",
		"npx https://x.example/p.tgz":  "is not a package of the registry",
		"npx -y":                       "names no package",
		"npx --registry https://x pkg": "has the option --registry",
		"npm exec pkg --port 3":        "has the option --port",
		"npx --no pkg":                 "has the option --no",
		"bunx pkg":                     "rules of its own",
		"pnpm dlx pkg":                 "rules of its own",
		"uvx pkg":                      "rules of its own",
		"uv tool run pkg":              "rules of its own",
		"node server.js":               "",
		"npm start":                    "",
		"/usr/bin/python3 -m server":   "",
	} {
		words := strings.Fields(line)
		if r, reason := Parse(Start{Command: words[0], Args: words[1:], Dir: t.TempDir()}); len(r.Specs) > 0 || !strings.Contains(reason, why) || why == "" && reason != "" {
			t.Errorf("%s is taken for %v, %q; want %q", line, r.Specs, reason, why)
		}
	}
}

func TestWhatIsInTheWorkingFolderComesFirst(t *testing.T) {
	t.Parallel()
	for file, why := range map[string]string{
		"node_modules/.bin/server":                "installed in",
		"node_modules/@scope/server/package.json": "installed in",
		".npmrc": "settings in",
	} {
		folder := t.TempDir()
		below := filepath.Join(folder, "below")
		for _, path := range []string{"package.json", file, "below/x"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, path), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, reason := Parse(Start{Command: "npx", Args: []string{"-y", "@scope/server"}, Dir: below}); !strings.Contains(reason, why) {
			t.Errorf("%s: %q", file, reason)
		}
	}
}

func TestNodeIsFoundInTheFirstLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"#!/usr/bin/env node\n":                     "node",
		"#!/usr/bin/env -S node --no-warnings -x\n": "node --no-warnings -x",
		"#!/usr/local/bin/node\n":                   "node",
		"#!/bin/sh\n":                               "",
		"\x7fELF":                                   "",
	} {
		got := ""
		if options := nodeOptions(line, "server"); options != nil {
			got = strings.Join(append([]string{"node"}, options...), " ")
		}
		if got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}
