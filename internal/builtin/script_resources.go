package builtin

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/luanette/luanette/examples/scripts"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// exampleTemplate is where the examples are read.
const exampleTemplate = "lua://examples/{name}"

// ScriptResources makes the resources that show scripts: the stored ones, and the
// examples, each also by an address of its own so that clients list them.
func ScriptResources(s ScriptStore) []Resource {
	all := []Resource{
		{URI: "lua://scripts/{hash}", Name: "script", Title: "A stored script",
			Description: "Source of a stored script, by its hash or the first 12 digits or more",
			TypeOf:      func(ctx context.Context, hash string) string { return storedMIME(ctx, s, hash) },
			Read:        func(ctx context.Context, hash string) (string, error) { return readScript(ctx, s, hash) }},
		{URI: exampleTemplate, Name: "example", Title: "An example script",
			Description: "Source of an example: " + strings.Join(exampleNames(), ", "),
			TypeOf:      func(_ context.Context, name string) string { return exampleMIME(name) },
			Read:        func(_ context.Context, name string) (string, error) { return example(name) }},
	}
	for _, name := range exampleNames() {
		all = append(all, Resource{
			URI: "lua://examples/" + name, Name: "example-" + name, Title: "Example: " + name, MIMEType: exampleMIME(name), Description: exampleTitle(name),
			Read: func(context.Context, string) (string, error) { return example(name) },
		})
	}
	return all
}

// storedMIME tells the language of a stored script; one that is not there has the
// type of most.
func storedMIME(ctx context.Context, s ScriptStore, hash string) string {
	ref, err := s.Resolve(ctx, strings.TrimSpace(hash))
	if err != nil {
		return scriptMIME[script.Lua]
	}
	a, err := s.Get(ctx, ref)
	if err != nil {
		return scriptMIME[script.Lua]
	}
	return a.MIME
}

// exampleNames are the examples, sorted: those in Lua without their extension.
func exampleNames() []string {
	entries, _ := scripts.Files.ReadDir(".") // embedded: always there
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".lua"))
	}
	return names
}

func example(name string) (string, error) {
	name = path.Base(name)
	if path.Ext(name) == "" {
		name += ".lua"
	}
	raw, err := scripts.Files.ReadFile(name)
	if err != nil {
		return "", fault.New(fault.NotFound, "no example %q", name).WithHint("there are %s", strings.Join(exampleNames(), ", "))
	}
	return string(raw), nil
}

func exampleMIME(name string) string { return scriptMIME[cmp.Or(languageWord(name), script.Lua)] }

// exampleTitle is the example's first comment line.
func exampleTitle(name string) string {
	source, _ := example(name)
	line, _, _ := strings.Cut(source, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "-/"))
}
