// Command apis measures how services with large OpenAPI documents become tools: the CPU
// time and memory until all are listed, and how well plain questions find them. It reads
// github.json and stripe.json of a folder; docs/apis.md says where they come from.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// The questions. Weights were compared on those of the first file; those of the second
// were written before anybody had seen an answer, and are hardly tuned on.
var (
	//go:embed questions.txt
	questions string
	//go:embed heldout.txt
	heldOut string
)

func main() {
	docs := flag.String("docs", "", "folder with github.json and stripe.json")
	flag.Parse()
	if err := report(context.Background(), *docs); err != nil {
		fmt.Fprintln(os.Stderr, "apis:", err)
		os.Exit(1)
	}
}

func report(ctx context.Context, docs string) error {
	bus := event.New(event.BusOptions{})
	manager := upstream.New(upstream.Options{Events: bus})
	defer manager.Close()
	for _, name := range []string{"github", "stripe"} {
		began, cpu := time.Now(), cpuTime()
		spec := upstream.Spec{Name: name, Trusted: true, Settings: upstream.Settings{API: api.Settings{Kind: api.OpenAPI, Source: filepath.Join(docs, name+".json")}}}
		if err := manager.Add(spec); err != nil {
			return err
		}
		manager.Await(ctx, bus, name, func(s upstream.Status) bool { return s.Attempted() })
		status, _ := manager.Status(name)
		if status.State != upstream.StateConnected {
			return fmt.Errorf("%s is %s: %s", name, status.State, status.LastError)
		}
		fmt.Printf("%s: %d tools in %v, %v of CPU\n", name, status.Tools, time.Since(began).Round(time.Millisecond), (cpuTime() - cpu).Round(time.Millisecond))
	}
	fmt.Printf("largest memory: %d MB\n", largestMemory()>>20)
	c := catalog.New(catalog.Options{Sources: []tool.Source{manager}})
	recall(ctx, c, "questions", questions)
	recall(ctx, c, "held out questions", heldOut)
	titles(ctx, c)
	return nil
}

// recall asks questions.
func recall(ctx context.Context, c *catalog.Catalog, name, text string) {
	found, first, asked := 0, 0, 0
	for line := range strings.Lines(text) {
		want, question, _ := strings.Cut(strings.TrimSpace(line), " ")
		hits, _ := c.Search(ctx, catalog.Query{Text: question, Limit: 5})
		names := make([]string, len(hits))
		for i, hit := range hits {
			names[i] = hit.Ref.String()
		}
		at := slices.Index(names, want)
		asked++
		switch {
		case at < 0:
			fmt.Printf("  %s: %s is not among %v\n", question, want, names)
			continue
		case at == 0:
			first++
		}
		found++
	}
	fmt.Printf("%d %s: %d found among the first five, %d as the first\n", asked, name, found, first)
}

// titles asks for every operation of GitHub by its title.
func titles(ctx context.Context, c *catalog.Catalog) {
	tools, _ := c.In(ctx, "github")
	first := 0
	for i := range tools {
		hits, _ := c.Search(ctx, catalog.Query{Text: tools[i].Title, Limit: 1})
		if len(hits) > 0 && hits[0].Title == tools[i].Title {
			first++
		}
	}
	fmt.Printf("%d titles: %d found as the first\n", len(tools), first)
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it cannot fail for this process
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// largestMemory is the most that the process ever had in memory.
func largestMemory() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it cannot fail for this process
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}
