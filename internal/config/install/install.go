// Package install connects other MCP clients to Luanette: it writes an entry into their
// own configuration, and puts the file back as it was.
package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config/clientfile"
)

// Installer changes the files of clients. Records is the folder in which it remembers
// what they were.
type Installer struct {
	System  clientfile.System
	Records string
	// Run runs a client's own command; nil edits all files ourselves.
	Run func(ctx context.Context, argv []string) error
}

// Request is what to install.
type Request struct {
	Client  clientfile.Client
	Launch  clientfile.Launch
	Project bool                // in the current project instead of for the user
	Move    []clientfile.Server // of the same file, which are removed from it
	DryRun  bool
}

// Result is what was done, or would be.
type Result struct {
	Client  string
	Path    string
	Command []string // the client's own command that was used
	Before  []byte   // nil if there was no file
	After   []byte   // nil if the file is gone
	Backup  string
	Cut     bool // only our entry was removed, since the file had changed meanwhile
}

// Changed reports whether anything differs.
func (r Result) Changed() bool {
	return !bytes.Equal(r.Before, r.After) || (r.Before == nil) != (r.After == nil)
}

// Install writes our entry into a client's file.
func (i Installer) Install(ctx context.Context, q Request) (Result, error) {
	file, err := q.Client.Target(i.System, q.Project)
	if err != nil {
		return Result{}, err
	}
	r := Result{Client: q.Client.Name, Path: file.Path, Backup: file.Path + backupSuffix}
	before, err := readFile(file.Path)
	if err != nil {
		return r, err
	}
	plan, err := planned(file, before, q)
	if err != nil {
		return r, err
	}
	r.Before, r.After, r.Command = before.text, plan.text, i.command(q, before, plan)
	if q.DryRun || !r.Changed() {
		return r, nil
	}
	old, err := i.record(q.Client.Name, file.Path)
	if err != nil {
		return r, err
	}
	next := old.next(before, file.Path, plan)
	next.Client = q.Client.Name
	if err := errors.Join(next.write(i.Records), next.writeBackup(before)); err != nil {
		return r, err
	}
	if r.After, err = i.apply(ctx, r, file, plan, before); err != nil {
		return r, err
	}
	if next.Sum != sumChanged {
		next.Sum = sumOf(r.After)
	}
	return r, next.write(i.Records)
}

// command returns the client's own command, if it can do the change.
func (i Installer) command(q Request, before snapshot, plan edited) []string {
	if i.Run == nil || q.Client.Command == nil || q.Project || plan.replaced != nil && before.text != nil {
		return nil // they refuse to replace an entry
	}
	return q.Client.Command(clientfile.Key, q.Launch)
}

// apply changes the file: with the client's own command if there is one that works, and
// otherwise, and for what it cannot do, by an edit.
func (i Installer) apply(ctx context.Context, r Result, file clientfile.File, plan edited, before snapshot) ([]byte, error) {
	text := plan.text
	if r.Command != nil && i.Run(ctx, r.Command) == nil {
		now, err := readFile(file.Path)
		if err != nil {
			return nil, err
		}
		if added, err := plan.onto(file, now.text); err == nil && now.text != nil {
			if text, before = added, now; bytes.Equal(text, now.text) {
				return text, nil
			}
		}
	}
	return text, before.write(file.Path, text)
}

// edited is a planned change of a file.
type edited struct {
	listed   bool // our entry is in a list
	text     []byte
	path     []string // of our entry
	entry    json.RawMessage
	present  int             // how many keys of path exist before
	replaced json.RawMessage // the entry that was there, or nil
	moved    []movedEntry
}

// movedEntry is an entry that was removed.
type movedEntry struct {
	Path  []string        `json:"path"`
	Entry json.RawMessage `json:"entry"`
}

// planned returns the change that a request asks for.
func planned(file clientfile.File, before snapshot, q Request) (edited, error) {
	value, err := q.Client.Entry(q.Launch)
	if err != nil {
		return edited{}, err
	}
	plan := edited{path: append(slices.Clone(q.Client.Keys), clientfile.Key), listed: q.Client.Listed}
	if plan.entry, err = encode(value); err != nil {
		return edited{}, err
	}
	text := before.text
	if text == nil {
		text = []byte(q.Client.Empty)
	}
	document, err := clientfile.SyntaxOf(file.Path).Decode(text)
	if err != nil {
		return edited{}, unreadable(file.Path, err)
	}
	if inner := at(document, []string{"mcp", "servers"}); rawjson.IsObject(inner) && slices.Equal(q.Client.Keys, []string{"mcp"}) {
		plan.path = []string{"mcp", "servers", clientfile.Key} // opencode's other shape
	}
	for plan.present < len(plan.path)-1 && isParent(at(document, plan.path[:plan.present+1])) {
		plan.present++
	}
	plan.replaced = at(document, plan.path)
	for _, s := range q.Move {
		plan.moved = append(plan.moved, movedEntry{s.Path, at(document, s.Path)})
	}
	plan.text, err = plan.onto(file, text)
	return plan, err
}

// onto applies the change to a text. What is done already stays as it is.
func (e edited) onto(file clientfile.File, text []byte) ([]byte, error) {
	syntax := clientfile.SyntaxOf(file.Path)
	document, err := syntax.Decode(text)
	if err != nil {
		return nil, unreadable(file.Path, err)
	}
	if !covers(at(document, e.path), e.entry) {
		if text, err = syntax.Put(text, e.path, e.entry, e.listed); err != nil {
			return nil, unreadable(file.Path, err)
		}
	}
	for _, m := range e.moved {
		if text, err = syntax.Cut(text, m.Path); err != nil {
			return nil, unreadable(file.Path, err)
		}
	}
	return text, nil
}

// isParent reports whether entries can be in a value.
func isParent(value json.RawMessage) bool {
	_, isList := rawjson.Items(value)
	return isList && value != nil || rawjson.IsObject(value)
}

// covers reports whether an entry has everything that ours has: clients add members of
// their own.
func covers(entry, ours json.RawMessage) bool {
	if entry == nil {
		return false
	}
	all := true
	rawjson.Each(ours, func(key string, want json.RawMessage) bool {
		got, ok := rawjson.Get(entry, key)
		all = all && (ok && sameJSON(got, want) || !ok && key == "type" && string(want) == `"stdio"`)
		return all
	})
	return all
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && x.String() == y.String()
}

func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}

// at returns what is at a path, or nil. Items of a list are found by their names.
func at(document json.RawMessage, path []string) json.RawMessage {
	for _, key := range path {
		document = member(document, key)
	}
	return document
}

func member(document json.RawMessage, key string) json.RawMessage {
	if rawjson.IsObject(document) {
		value, _ := rawjson.Get(document, key)
		return value
	}
	items, _ := rawjson.Items(document)
	for _, item := range items {
		if name, _ := rawjson.GetText(item, "name"); name == key {
			return item
		}
	}
	return nil
}

func unreadable(path string, err error) error {
	return fault.Wrap(fault.Config, err, "edit %s", path).
		WithHint("nothing was changed; correct the file, or add the server by hand: docs/clients.md shows how")
}

// Status is whether Luanette is installed in a client.
type Status struct {
	Client    clientfile.Client
	Path      string
	Found     bool // the client is on this machine
	Installed bool
	Servers   int // others in the file
	Err       error
}

// Status returns whether Luanette is installed in a client, for the user.
func (i Installer) Status(client clientfile.Client, lookPath func(string) bool) Status {
	file, err := client.Target(i.System, false)
	s := Status{Client: client, Path: file.Path, Err: err}
	folder := filepath.Dir(file.Path)
	s.Found = exists(file.Path) || exists(folder) && folder != i.System.Home || client.Program != "" && lookPath(client.Program)
	if !exists(file.Path) {
		return s
	}
	servers, err := file.Read(i.System)
	s.Err = err
	for _, server := range servers {
		if server.Ours() && server.Project == "" {
			s.Installed = true
		} else {
			s.Servers++
		}
	}
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Uninstall puts a client's file back: with the bytes it had, or, if it was changed since, without our entry and with the servers that were moved.
func (i Installer) Uninstall(client clientfile.Client, project, dryRun bool) (Result, error) {
	file, err := client.Target(i.System, project)
	if err != nil {
		return Result{}, err
	}
	old, err := i.record(client.Name, file.Path)
	if err != nil {
		return Result{}, err
	}
	if old.Path == "" {
		old = installation{Client: client.Name, Path: file.Path, Added: append(slices.Clone(client.Keys), clientfile.Key), Present: len(client.Keys)}
	}
	r, err := old.undo(dryRun)
	if err != nil || dryRun {
		return r, err
	}
	return r, old.forget(i.Records)
}
