package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunLua(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script.lua")
	if err := os.WriteFile(script, []byte("#!/usr/bin/lua\nprint(..., arg[0] == '"+script+"', arg[2])"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		args  []string
		stdin string
		out   string
		err   string
		code  int
	}{
		{name: "file with arguments", args: []string{script, "a", "b"}, out: "a\ttrue\tb\n"},
		{name: "code", args: []string{"-e", "x = 1", "-e", "print(x + 1)"}, out: "2\n"},
		{name: "standard input", stdin: "print(io.read and 'in')", out: "in\n"},
		{name: "exit code", args: []string{"-e", "os.exit(7)"}, code: 7},
		{name: "error", args: []string{"-e", "local t; t.x = 1"}, code: 1,
			err: "lua: (command line):1: attempt to index a nil value (local 't')\nstack traceback:\n"},
		{name: "syntax error", args: []string{"-e", "x ="}, code: 1,
			err: "lua: (command line):1: unexpected symbol near <eof>\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			code := runLua(tt.args, strings.NewReader(tt.stdin), &out, &errs)
			if code != tt.code || out.String() != tt.out || !strings.HasPrefix(errs.String(), tt.err) {
				t.Errorf("code %d, out %q, err %q", code, out.String(), errs.String())
			}
		})
	}
}
