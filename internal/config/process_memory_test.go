package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestControlGroupMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		list  string
		files map[string]string
		want  int64
	}{
		"none":            {"", nil, 0},
		"version 2":       {"0::/a/b\n", map[string]string{"a/b/memory.max": "2147483648\n"}, 2 << 30},
		"of the parent":   {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "1073741824\n"}, 1 << 30},
		"of a container":  {"0::/\n", map[string]string{"memory.max": "536870912\n"}, 512 << 20},
		"version 1":       {"4:memory:/x\n0::/\n", map[string]string{"memory/x/memory.limit_in_bytes": "2147483648\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2 << 30},
		"another kind":    {"8:pids:/x\n", map[string]string{"memory/x/memory.limit_in_bytes": "5\n"}, 0},
		"not a number":    {"0::/\n", map[string]string{"memory.max": "lots"}, 0},
		"path goes above": {"0::/../..\n", map[string]string{"memory.max": "77"}, 77},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range test.files {
				file = filepath.Join(dir, "fs", file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			list := filepath.Join(dir, "list")
			if err := os.WriteFile(list, []byte(test.list), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := controlGroupMemory(list, filepath.Join(dir, "fs")); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestMemoryOfScripts(t *testing.T) {
	t.Parallel()
	if got := processMemory(Environment{"GOMEMLIMIT": "64MiB"}); got != 64<<20 {
		t.Errorf("with GOMEMLIMIT the process may use %d", got)
	}
	var c Config
	if got := c.ScriptMemory(Environment{"GOMEMLIMIT": "64MiB"}).Total(); got != 32<<20 {
		t.Errorf("scripts may hold %d, want half", got)
	}
	if got := c.heapLimit(2 << 30); got != 3<<29 {
		t.Errorf("limit of the heap: %d", got)
	}
	c.Scripts.TotalMB = 100
	if got := c.heapLimit(8 << 30); got != leastHeap {
		t.Errorf("limit of the heap with little for scripts: %d", got)
	}
	if got := c.heapLimit(256 << 20); got > 256<<20 {
		t.Errorf("limit of the heap on a small machine: %d", got)
	}
}
