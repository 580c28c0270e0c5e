package builtin

import (
	"context"
	"path"
	"strings"

	"github.com/luanette/luanette/examples/scripts"
	"github.com/luanette/luanette/internal/fault"
)

// exampleTemplate is where the examples are read.
const exampleTemplate = "lua://examples/{name}"

// ScriptResources makes the resources that show scripts: the stored ones, and the
// examples, each also by an address of its own so that clients list them.
func ScriptResources(s ScriptStore) []Resource {
	all := []Resource{
		{URI: "lua://scripts/{hash}", Name: "script", Title: "A stored script", MIMEType: scriptMIME,
			Description: "Source of a stored script, by its hash or the first 12 digits or more",
			Read:        func(ctx context.Context, hash string) (string, error) { return readScript(ctx, s, hash) }},
		{URI: exampleTemplate, Name: "example", Title: "An example script", MIMEType: scriptMIME,
			Description: "Source of an example: " + strings.Join(exampleNames(), ", "),
			Read:        func(_ context.Context, name string) (string, error) { return example(name) }},
	}
	for _, name := range exampleNames() {
		all = append(all, Resource{
			URI: "lua://examples/" + name, Name: "example-" + name, Title: "Example: " + name, MIMEType: scriptMIME, Description: exampleTitle(name),
			Read: func(context.Context, string) (string, error) { return example(name) },
		})
	}
	return all
}

// exampleNames are the examples, sorted.
func exampleNames() []string {
	entries, _ := scripts.Files.ReadDir(".") // embedded: always there
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".lua"); ok {
			names = append(names, name)
		}
	}
	return names
}

func example(name string) (string, error) {
	raw, err := scripts.Files.ReadFile(path.Base(name) + ".lua")
	if err != nil {
		return "", fault.New(fault.NotFound, "no example %q", name).WithHint("there are %s", strings.Join(exampleNames(), ", "))
	}
	return string(raw), nil
}

// exampleTitle is the example's first comment line.
func exampleTitle(name string) string {
	source, _ := example(name)
	line, _, _ := strings.Cut(source, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "-"))
}
