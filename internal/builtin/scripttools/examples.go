package scripttools

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/luanette/luanette/examples/scripts"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
)

// exampleTemplate is the URI template of the examples.
const exampleTemplate = "lua://examples/{name}"

// Resources makes the resources for stored scripts and examples. Each example
// also has its own URI, so that clients list it.
func Resources(s *artifact.Store) []builtin.Resource {
	all := []builtin.Resource{
		{URI: "lua://scripts/{hash}", Name: "script", Title: "A stored script",
			Description: "Source of a stored script, by its hash or at least its first 12 digits",
			TypeOf:      func(ctx context.Context, hash string) string { return storedMIME(ctx, s, hash) },
			Read: func(ctx context.Context, hash string) (string, error) {
				_, source, err := Load(ctx, s, hash)
				return source, err
			}},
		{URI: exampleTemplate, Name: "example", Title: "An example script",
			Description: "Source of an example: " + strings.Join(exampleNames(), ", "),
			TypeOf:      func(_ context.Context, name string) string { return exampleMIME(name) },
			Read:        func(_ context.Context, name string) (string, error) { return example(name) }},
	}
	for _, name := range exampleNames() {
		all = append(all, builtin.Resource{
			URI: "lua://examples/" + name, Name: "example-" + name, Title: "Example: " + name, MIMEType: exampleMIME(name), Description: exampleTitle(name),
			Read: func(context.Context, string) (string, error) { return example(name) },
		})
	}
	return all
}

// storedMIME returns the MIME type of a stored script; Lua if there is none.
func storedMIME(ctx context.Context, s *artifact.Store, hash string) string {
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

// exampleNames lists the examples, sorted; those in Lua without their extension.
func exampleNames() []string {
	entries, _ := scripts.Files.ReadDir(".") // embedded, cannot fail
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
		return "", fault.New(fault.NotFound, "no example %q", name).WithHint("available: %s", strings.Join(exampleNames(), ", "))
	}
	return string(raw), nil
}

func exampleMIME(name string) string { return scriptMIME[cmp.Or(storeLanguage(name), script.Lua)] }

// exampleTitle returns the example's first comment line.
func exampleTitle(name string) string {
	source, _ := example(name)
	line, _, _ := strings.Cut(source, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "-/"))
}
