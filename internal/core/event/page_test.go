package event_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/core/event"
)

// declaration is the payload of a type of events in the sources.
type declaration struct {
	doc  string
	data []string // one text for each field
}

const pageHead = `# Events

The server publishes an event whenever something happens that others may want to know. Scripts receive them with [` + "`on(type, fn)`" + `](modules.md#events), the page and other programs from ` + "`GET /api/v1/events`" + ` ([hud.md](hud.md)). An event is ` + "`{ type, seq, time, data }`" + `; this page lists the types and the fields of ` + "`data`" + `. A field with ? may be missing. Who may not see a thing does not see its events.

Scripts publish types of their own, which begin with ` + "`script.`" + `, with ` + "`emit`" + `. Broadcasts of a backend over ZeroMQ that are of none of these types begin with ` + "`backend.`" + `; of the others they have whatever the backend sent, and ` + "`upstream`" + `.

| type | when | data |
|---|---|---|
`

// TestPageIsUpToDate writes docs/events.md from the sources; UPDATE=1 stores it.
func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	found := declarations(t)
	var page strings.Builder
	page.WriteString(pageHead)
	for _, name := range event.Types() {
		one, ok := found[name]
		if !ok {
			t.Errorf("nothing declares %s", name)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", name, one.doc, strings.Join(one.data, ", "))
	}
	const path = "../../../docs/events.md"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(path); err != nil || string(stored) != page.String() {
		t.Errorf("docs/events.md is out of date (%v): run UPDATE=1 go test ./internal/core/event", err)
	}
}

// declarations finds the payloads in the sources, by type of event. Those whose types are
// put together, or are for the backends of music, are named here.
func declarations(t *testing.T) map[string]declaration {
	t.Helper()
	found := map[string]declaration{
		"job.state_changed": {doc: "a backend has a job in another state", data: []string{"what the backend sent"}},
	}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(source), "EventType() string") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		if err == nil {
			addPayloads(file, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"closed", "created", "forked", "reset", "used"} {
		session := found["session."]
		session.doc = "a session was " + kind
		found["session."+kind] = session
	}
	return found
}

// addPayloads adds the payloads that a file declares.
func addPayloads(file *ast.File, found map[string]declaration) {
	structs, docs := map[string]*ast.StructType{}, map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		group, ok := n.(*ast.GenDecl)
		if !ok {
			return true
		}
		for _, spec := range group.Specs {
			if one, ok := spec.(*ast.TypeSpec); ok {
				structs[one.Name.Name], _ = one.Type.(*ast.StructType)
				docs[one.Name.Name] = one.Doc.Text()
				if len(group.Specs) == 1 {
					docs[one.Name.Name] = group.Doc.Text()
				}
			}
		}
		return false
	})
	for _, decl := range file.Decls {
		method, ok := decl.(*ast.FuncDecl)
		if !ok || method.Name.Name != "EventType" || method.Recv == nil {
			continue
		}
		name := method.Recv.List[0].Type.(*ast.Ident).Name
		ast.Inspect(method.Body, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				kind, _ := strconv.Unquote(literal.Value)
				found[kind] = declaration{when(name, docs[name]), fields(structs[name], structs)}
			}
			return true
		})
	}
}

var sentence = regexp.MustCompile(`^(?s:.*?)\.(\s|$)`)

// when is the first sentence of a payload's comment, without "Name is published when".
func when(name, doc string) string {
	text := strings.Join(strings.Fields(sentence.FindString(doc)), " ")
	for _, begin := range []string{" is published when ", " is published after ", " is published ", " is the event of ", " reports that ", " says that ", " reports ", " is "} {
		if rest, ok := strings.CutPrefix(text, name+begin); ok {
			text = rest
			break
		}
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + strings.TrimSuffix(text[min(size, len(text)):], ".")
}

// fields are the fields of a payload as they are in JSON, with their comments.
func fields(payload *ast.StructType, structs map[string]*ast.StructType) (all []string) {
	if payload == nil {
		return nil
	}
	for _, field := range payload.Fields.List {
		if embedded, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
			all = append(all, fields(structs[embedded.Name], structs)...)
		}
		if field.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(field.Tag.Value)
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		if slices.Contains(strings.Split(options, ","), "omitempty") || strings.Contains(options, "omitzero") {
			name += "?"
		}
		text := "`" + name + "`"
		if comment := strings.Join(strings.Fields(field.Comment.Text()+field.Doc.Text()), " "); comment != "" {
			text += " (" + strings.ReplaceAll(strings.TrimSuffix(comment, "."), "|", "or") + ")"
		}
		all = append(all, text)
	}
	return all
}
