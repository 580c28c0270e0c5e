package js

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

const hostileMemory = 16 << 20

// TestHostileScripts runs the scripts in testdata/hostile. The first line of each says how it
// must end: with one of the faults listed there, or "well". Its memory must stay within the
// limit, and the next script must run.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	// One instance each, so that the next script would find leftovers.
	e := newEngine(t, Options{Memory: hostileMemory, PoolSize: 1})
	files, err := filepath.Glob("testdata/hostile/*.js")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".js"), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(source), "\n")
			want, ok := strings.CutPrefix(head, "// ends: ")
			if !ok {
				t.Fatal("the first line does not say how it ends")
			}
			p := hostileProgram(string(source))
			ways := strings.Split(want, ",")
			if !slices.Contains(ways, string(fault.Timeout)) {
				p.Limits.Time = time.Minute // it must end for another reason
			}
			got, err := e.Run(t.Context(), p, hostileHost())
			if ended := howEnded(err); !slices.Contains(ways, ended) {
				t.Errorf("ended %s (%v), want %s", ended, err, want)
			}
			if got.Memory > hostileMemory {
				t.Errorf("memory of %d bytes, want at most %d", got.Memory, hostileMemory)
			}
			next, err := e.Run(t.Context(), program("[1, 2, 3].map(x => x * 2)"), testHost())
			if err != nil || string(next.Result) != "[2,4,6]" {
				t.Errorf("the next script gave %s, %v", next.Result, err)
			}
		})
	}
}

func hostileProgram(source string) Program {
	p := program(source)
	p.Funcs = []Func{{Name: "hang", Sync: true}}
	p.Limits = Limits{Time: 60 * time.Millisecond, Calls: 50}
	return p
}

// hostileHost has a synchronous function that hangs until its context ends.
func hostileHost() Host {
	h := testHost()
	h.OnSync = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h
}

func howEnded(err error) string {
	if err == nil {
		return "well"
	}
	return string(fault.CodeOf(err))
}
