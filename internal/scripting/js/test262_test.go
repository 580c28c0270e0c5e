package js

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

// TestConformance runs a sample of the ECMAScript conformance suite. TEST262 is the path of
// its checkout. The sample is the same each time.
func TestConformance(t *testing.T) {
	root := os.Getenv("TEST262")
	if root == "" {
		t.Skip("make test262 TEST262=DIR runs it: the suite is not ours to ship")
	}
	const share, goal = 12, 0.97 // every twelfth test
	var passed, run atomic.Int32
	t.Run("sample", func(t *testing.T) {
		for _, file := range conformanceSample(t, root, share) {
			c := readConformanceTest(t, root, file)
			if c.skip() {
				continue
			}
			t.Run(strings.TrimPrefix(file, root), func(t *testing.T) {
				t.Parallel()
				run.Add(1)
				if why := c.run(t); why != "" {
					t.Logf("fails: %s", why)
					return
				}
				passed.Add(1)
			})
		}
	})
	if run.Load() == 0 {
		t.Fatalf("nothing of the suite is in %s", root)
	}
	got := float64(passed.Load()) / float64(run.Load())
	t.Logf("%d of %d pass: %.1f %%", passed.Load(), run.Load(), 100*got)
	if got < goal {
		t.Errorf("%.3f of the sample pass, want %.2f", got, goal)
	}
}

func conformanceSample(t *testing.T, root string, share uint32) []string {
	var files []string
	err := filepath.WalkDir(filepath.Join(root, "test"), func(path string, d fs.DirEntry, err error) error {
		rest, _ := filepath.Rel(root, path)
		rest = filepath.ToSlash(rest)
		if d != nil && d.IsDir() && (rest == "test/intl402" || rest == "test/staging" || rest == "test/harness") {
			return filepath.SkipDir
		}
		h := fnv.New32a()
		h.Write([]byte(rest))
		if strings.HasSuffix(path, ".js") && !strings.Contains(path, "_FIXTURE") && h.Sum32()%share == 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// conformanceTest is one file of the suite: its source and what its front matter says.
type conformanceTest struct {
	source   string
	matter   string
	includes []string
	harness  string // directory
}

var (
	frontMatter = regexp.MustCompile(`(?s)/\*---(.*?)---\*/`)
	listed      = regexp.MustCompile(`[\w.-]+`)
	negative    = regexp.MustCompile(`negative:\s+phase: (\w+)\s+type: (\w+)`)
)

func readConformanceTest(t *testing.T, root, file string) conformanceTest {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := conformanceTest{source: string(b), harness: filepath.Join(root, "harness")}
	if m := frontMatter.FindStringSubmatch(c.source); m != nil {
		c.matter = m[1]
	}
	c.includes = append([]string{"assert.js", "sta.js"}, c.list("includes")...)
	return c
}

// list reads a list of the front matter, in either of its two forms.
func (c conformanceTest) list(key string) []string {
	_, rest, ok := strings.Cut(c.matter, key+":")
	if !ok {
		return nil
	}
	if inline, _, ok := strings.Cut(strings.TrimSpace(rest), "]"); ok && strings.HasPrefix(inline, "[") {
		return listed.FindAllString(inline, -1)
	}
	var items []string
	for line := range strings.Lines(strings.TrimPrefix(rest, "\n")) {
		item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		items = append(items, item)
	}
	return items
}

func (c conformanceTest) has(key, item string) bool {
	for _, x := range c.list(key) {
		if x == item {
			return true
		}
	}
	return false
}

// skip reports whether a test needs what the engine or the sandbox does not have: modules, a
// second realm, shared memory, proposals. Syntax that TypeScript allows is not an error here.
func (c conformanceTest) skip() bool {
	for _, flag := range []string{"module", "raw", "CanBlockIsTrue", "non-deterministic"} {
		if c.has("flags", flag) {
			return true
		}
	}
	for _, feature := range []string{
		"Temporal", "Atomics", "SharedArrayBuffer", "ShadowRealm", "dynamic-import", "import-defer", "source-phase-imports",
		"decorators", "import-bytes", "import-text", "tail-call-optimization", "IsHTMLDDA", "cross-realm", "explicit-resource-management", "nonextensible-applies-to-private",
		"Intl.Era-monthcode", "Atomics.pause", "upsert", "immutable-arraybuffer", "joint-iteration", "await-dictionary", "export-defer", "iterator-sequencing", "canonical-tz",
	} {
		if c.has("features", feature) {
			return true
		}
	}
	m := negative.FindStringSubmatch(c.matter)
	return strings.Contains(c.source, "$262") || m != nil && m[1] == "parse"
}

// run returns why the test fails, or "".
func (c conformanceTest) run(t *testing.T) string {
	var b strings.Builder
	if c.has("flags", "onlyStrict") {
		b.WriteString("'use strict';\n")
	}
	for _, name := range c.includes {
		text, err := os.ReadFile(filepath.Join(c.harness, name))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	if c.has("flags", "async") {
		b.WriteString("function $DONE(e) { globalThis.__result__ = e ? String(e) : 'done' }\n")
	}
	b.WriteString(c.source)
	got, err := shared.Run(t.Context(), Program{Source: b.String(), Limits: Limits{Time: 60e9}}, HostFuncs{})
	if m := negative.FindStringSubmatch(c.matter); m != nil {
		var e *Error
		if !errors.As(err, &e) || e.Name != m[2] {
			return "wants " + m[2]
		}
		return ""
	}
	switch {
	case err != nil && fault.CodeOf(err) == fault.Internal:
		t.Errorf("broke the engine: %v", err)
		return err.Error()
	case err != nil:
		return err.Error()
	case c.has("flags", "async") && string(got.Result) != `"done"`:
		return "ended with " + string(got.Result)
	}
	return ""
}
