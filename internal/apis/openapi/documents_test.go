package openapi

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// TestDocuments reads every document of a folder and checks all tools: our own small
// documents, or with `make test-apis DOCS=DIR` those of large services, which are not in
// the repository.
func TestDocuments(t *testing.T) {
	t.Parallel()
	folder := cmp.Or(os.Getenv("DOCS"), "testdata")
	files, err := filepath.Glob(filepath.Join(folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			env := api.Environment{Name: "big", Settings: api.Settings{Kind: api.OpenAPI, Source: file, BaseURL: "https://api.example.org"}}
			began, cpu := time.Now(), cpuTime(t)
			s, err := load(env, os.ReadFile)
			if err != nil {
				t.Fatal(err)
			}
			wall, used := time.Since(began), cpuTime(t)-cpu
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			size := 0
			for _, definition := range s.listing.Tools {
				size += len(definition)
				checkDefinition(t, definition)
			}
			t.Logf("%d tools of %d bytes, left out %d; %v, CPU %v, heap from the system %d MB", len(s.listing.Tools), size, len(s.listing.LeftOut),
				wall.Round(time.Millisecond), used.Round(time.Millisecond), memory.HeapSys>>20)
			for _, reason := range s.listing.LeftOut[:min(len(s.listing.LeftOut), 5)] {
				t.Log("left out:", reason)
			}
		})
	}
}

func cpuTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// checkDefinition checks what every definition must be.
func checkDefinition(t *testing.T, definition json.RawMessage) {
	t.Helper()
	var tool struct {
		Name         string
		Description  string
		InputSchema  json.RawMessage
		OutputSchema json.RawMessage
	}
	if err := json.Unmarshal(definition, &tool); err != nil {
		t.Errorf("%s: %v", definition[:min(len(definition), 200)], err)
		return
	}
	if len(tool.Name) > api.NameBudget("big") || cleanName(tool.Name) != tool.Name || tool.Description == "" {
		t.Errorf("name %q, description %q", tool.Name, tool.Description)
	}
	for kind, raw := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema} {
		if raw == nil {
			continue
		}
		schema, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Errorf("%s: %s schema: %v", tool.Name, kind, err)
			continue
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("tool:schema", schema); err != nil {
			t.Errorf("%s: %s schema: %v", tool.Name, kind, err)
		} else if _, err := compiler.Compile("tool:schema"); err != nil {
			t.Errorf("%s: %s schema: %v\n%s", tool.Name, kind, err, raw[:min(len(raw), 400)])
		}
		if depth := rawjson.Depth(raw); depth > 95 {
			t.Errorf("%s: %s schema is %d deep", tool.Name, kind, depth)
		}
	}
}
