// Package scripttools are the tools that run, store and publish scripts and code, with or
// without a session, and the prompts and examples about them.
package scripttools

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/scripting/script/session"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// The artifact types of scripts, by language.
var scriptMIME = map[string]string{"lua": "text/x-lua", "javascript": "text/javascript", "typescript": "text/typescript"}

// scriptTag is the tag of scripts in all languages, unless they have a type of their
// own. It is not shown.
const scriptTag = "kind:script"

// shownTags returns a script's tags without internal ones.
func shownTags(tags []string) []string {
	return slices.DeleteFunc(append([]string{}, tags...), func(tag string) bool { return tag == scriptTag || tag == artifact.RunTag })
}

// Tools makes the tools that run, store and publish scripts.
func Tools(r *script.Runner, s *artifact.Store, p *publish.Published, sessions *session.Sessions) []toolset.Tool {
	t := scriptTools{r, s, p, sessions}
	return []toolset.Tool{
		toolset.AsScriptRunner(toolset.DefineResult[evalIn, Evaluated](texts, "lua_eval", tool.Hints{}, t.eval)),
		toolset.DefineResult[describeIn, Described](texts, "lua_describe", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.describe),
		toolset.Define(texts, "lua_help", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.help),
		toolset.Define(texts, "script_store", tool.Hints{NonDestructive: true, Idempotent: true, ClosedWorld: true}, t.store),
		toolset.Define(texts, "script_search", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.search),
		toolset.Define(texts, "script_get", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.get),
		toolset.Checked(toolset.Define(texts, "script_publish", tool.Hints{Idempotent: true, ClosedWorld: true}, t.publish), t.refusesPublication),
		toolset.Define(texts, "script_unpublish", tool.Hints{Idempotent: true, ClosedWorld: true}, t.unpublish),
		toolset.Define(texts, "script_history", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.history),
	}
}

type scriptTools struct {
	runner    *script.Runner
	scripts   *artifact.Store
	publisher *publish.Published
	sessions  *session.Sessions
}

// Load finds a stored script and its source.
func Load(ctx context.Context, scripts *artifact.Store, hash string) (cas.Ref, string, error) {
	ref, err := scripts.Resolve(ctx, strings.TrimSpace(hash))
	if err != nil {
		return cas.Ref{}, "", err
	}
	source, err := scripts.Read(ctx, ref, script.MaxSource)
	return ref, string(source), err
}

// OrEmpty returns arguments as JSON.
func OrEmpty(o toolset.Object) toolset.JSON {
	if len(o) == 0 {
		return toolset.JSON("{}")
	}
	return toolset.JSON(o)
}

// Fault converts a script's failure to a fault.
func Fault(err error) error {
	if failed, ok := err.(*script.Error); ok { //nolint:errorlint // what the runner returns is it, not around it
		return failed.Fault()
	}
	return err
}

type hashIn struct {
	ScriptHash string `json:"script_hash" jsonschema:"hash of a stored script, or at least its first 12 digits" min:"12" max:"70"`
}

type describeIn struct {
	ScriptHash string `json:"script_hash,omitempty" jsonschema:"hash of a stored script, or at least its first 12 digits" max:"70"`
	Script     string `json:"script,omitempty" jsonschema:"alternative: cas:HASH" max:"70"`
}

// Named returns the hash of a script given as script_hash or script.
func Named(tool, hash, script string) (string, error) {
	if (hash == "") == (script == "") {
		return "", fault.New(fault.InvalidParams, "%s needs either script_hash or script", tool).
			WithHint(`store the script with script_store, then give its hash: {"script_hash": "…"}`)
	}
	name := strings.TrimSpace(cmp.Or(hash, script))
	if strings.ContainsAny(name, " \t\n(") {
		return "", fault.New(fault.InvalidParams, "%s takes the hash of a script, not the script itself", tool).
			WithHint("store it with script_store, which returns the hash; lua_eval runs code directly")
	}
	return name, nil
}

// Described is the result of lua_describe.
type Described struct {
	Hash        string         `json:"hash"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description"`
	Params      toolset.Object `json:"params,omitempty" jsonschema:"by name: type, required, default, description, enum"`
	InputSchema toolset.Object `json:"input_schema,omitempty" jsonschema:"the params as JSON Schema"`
	Returns     string         `json:"returns,omitempty"`
	Tags        []string       `json:"tags,omitempty"`
	Warnings    []string       `json:"warnings,omitempty" jsonschema:"fields of describe() that were ignored"`
}

// Text returns a few lines.
func (d Described) Text() string {
	if d.Name == "" {
		d.Name = d.Hash[:cas.MinPrefix]
	}
	lines := []string{"Script: " + d.Name, "Description: " + d.Description}
	if len(d.Params) > 0 {
		lines = append(lines, "Params: "+string(d.Params))
	}
	if d.Returns != "" {
		lines = append(lines, "Returns: "+d.Returns)
	}
	return strings.Join(append(lines, d.Warnings...), "\n")
}

func (t scriptTools) describe(ctx context.Context, _ tool.Call, in describeIn) (tool.Result, error) {
	name, err := Named("lua_describe", in.ScriptHash, in.Script)
	if err != nil {
		return tool.Result{}, err
	}
	ref, source, err := Load(ctx, t.scripts, name)
	if err != nil {
		return tool.Result{}, err
	}
	d, err := t.runner.Describe(ctx, script.Request{Source: source, Hash: ref})
	if err != nil {
		return script.ToolFailure(script.Outcome{}, err), nil
	}
	out := Described{Hash: ref.String(), Description: script.NoDescription}
	if d.Defined {
		out = Described{
			Hash: ref.String(), Name: d.Name, Description: d.Description, Params: toolset.Object(d.Table()), InputSchema: toolset.Object(d.Schema()),
			Returns: d.Returns, Tags: d.Tags, Warnings: d.Warnings,
		}
	}
	return tool.Output(out.Text(), out)
}

type storeIn struct {
	Content  string   `json:"content" jsonschema:"the script: it defines main(params), and describe() to be found and published" min:"1" max:"1048576"`
	Language string   `json:"language,omitempty" jsonschema:"language; default lua, or JavaScript if it is not valid Lua" enum:"lua,javascript,typescript"`
	Tags     []string `json:"tags,omitempty" jsonschema:"tags to find it by, such as style:ambient; a type tag is added" max:"64"`
	Creator  string   `json:"creator,omitempty" jsonschema:"creator" max:"256"`
	Parent   string   `json:"parent,omitempty" jsonschema:"hash of the script it was derived from"`
}

// Stored is the result of script_store.
type Stored struct {
	Hash        string   `json:"hash" jsonschema:"hash of the script"`
	Created     bool     `json:"created" jsonschema:"false if the same script was stored before"`
	Language    string   `json:"language" jsonschema:"its language"`
	Tags        []string `json:"tags"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Warnings    []string `json:"warnings,omitempty" jsonschema:"problems of the script, which was stored anyway"`
}

// Text returns the hash and the problems.
func (s Stored) Text() string {
	text := "Stored script " + s.Hash
	if s.Name != "" {
		text = "Stored script " + s.Name + " as " + s.Hash
	}
	return strings.Join(append([]string{text}, s.Warnings...), "\n")
}

func (t scriptTools) store(ctx context.Context, call tool.Call, in storeIn) (Stored, error) {
	d, problem := t.recognize(ctx, &in)
	_, unknown := t.scripts.Get(ctx, cas.Sum([]byte(in.Content)))
	details := artifact.Details{MIME: scriptMIME[in.Language], Tags: in.Tags, Creator: in.Creator}
	if !slices.ContainsFunc(in.Tags, func(tag string) bool { return strings.HasPrefix(tag, "type:") }) {
		details.Tags = append(slices.Clone(in.Tags), "type:"+in.Language, scriptTag)
	}
	if in.Parent != "" {
		parent, err := t.scripts.Resolve(ctx, in.Parent)
		if err != nil {
			return Stored{}, fault.Wrap(fault.CodeOf(err), err, "find parent")
		}
		if unknown != nil { // one that is known keeps its ancestors: an author returned to it
			details.Parent = parent
		}
	}
	warnings := d.Warnings
	if problem != nil {
		warnings = append(warnings, problem.Error())
	}
	details.Name, details.Description = clip(d.Name, 256), clip(d.Description, 8<<10)
	details.Tags = append(details.Tags, d.Tags...)
	switch ran := rawjson.GetBool(call.Meta, RunKey) && d.Name == ""; {
	case !ran:
		details.Untag = artifact.RunTag
	case unknown != nil:
		details.Tags = []string{artifact.RunTag}
	default: // it is listed or not, as it was
		details.Tags = nil
	}
	a, created, err := t.scripts.Put(ctx, strings.NewReader(in.Content), details)
	if err != nil {
		return Stored{}, err
	}
	return Stored{a.Hash.String(), created, script.LanguageOf(a.MIME), shownTags(a.Tags), a.Name, a.Description, warnings}, nil
}

// recognize describes a script in the given language. If it is not valid in that
// language but is valid in the other one, it uses the other one: the hash identifies
// these bytes permanently, and they are valid in one language only.
func (t scriptTools) recognize(ctx context.Context, in *storeIn) (script.Description, error) {
	in.Language = cmp.Or(in.Language, script.Lua)
	describe := func(word string) (script.Description, error) {
		return t.runner.Describe(ctx, script.Request{Source: in.Content, Language: script.LanguageOf(scriptMIME[word])})
	}
	d, err := describe(in.Language)
	if !unreadable(err) {
		return d, err
	}
	other := script.JavaScript
	if in.Language != script.Lua {
		other = script.Lua
	}
	if better, tried := describe(other); !unreadable(tried) {
		in.Language = other
		return better, tried
	}
	return d, err
}

// unreadable reports whether a script is not valid in its language.
func unreadable(err error) bool {
	var failed *script.Error
	return errors.As(err, &failed) && failed.Kind == script.SyntaxError
}

func clip(text string, limit int) string { return text[:min(len(text), limit)] }

// ScriptView is a stored script as search shows it.
type ScriptView struct {
	Hash        string    `json:"hash"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description,omitempty"`
	Tags        []string  `json:"tags"`
	Creator     string    `json:"creator,omitempty"`
	Parent      string    `json:"parent,omitempty" jsonschema:"hash of the script it was derived from"`
	CreatedAt   time.Time `json:"created_at"`
}

func scriptView(a *artifact.Artifact) ScriptView {
	v := ScriptView{
		Hash: a.Hash.String(), Name: a.Name, Description: a.Description, Tags: shownTags(a.Tags), Creator: a.Creator, CreatedAt: a.CreatedAt.UTC(),
	}
	if !a.Parent.IsZero() {
		v.Parent = a.Parent.String()
	}
	return v
}

type scriptSearchIn struct {
	Tag     string `json:"tag,omitempty" jsonschema:"only scripts with this tag"`
	Creator string `json:"creator,omitempty" jsonschema:"only scripts of this creator"`
	Parent  string `json:"parent,omitempty" jsonschema:"only scripts derived from the one with this hash"`
	Vibe    string `json:"vibe,omitempty" jsonschema:"free text, searched in names, descriptions, tags and annotations" max:"1000"`
	Limit   int    `json:"limit,omitempty" jsonschema:"maximum number (default 20)" min:"1" max:"200"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous page"`
}

// FoundScripts is the result of script_search.
type FoundScripts struct {
	Scripts    []ScriptView `json:"scripts" jsonschema:"best match first with a vibe, otherwise newest first"`
	Total      int          `json:"total" jsonschema:"number of matches, counted up to 1000"`
	NextCursor string       `json:"next_cursor,omitempty" jsonschema:"for the next page"`
}

// Text lists them in one or two lines each.
func (f FoundScripts) Text() string {
	if len(f.Scripts) == 0 {
		return "No script matches."
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Found %s (showing %d):", plural.Count(f.Total, "script"), len(f.Scripts))
	for _, s := range f.Scripts {
		name := s.Name
		name = cmp.Or(name, "(no name)")
		fmt.Fprintf(&out, "\n%s %s [%s]", s.Hash[:cas.MinPrefix], name, strings.Join(s.Tags, ", "))
		if s.Description != "" {
			fmt.Fprintf(&out, "\n  %s", builtin.Brief(s.Description, builtin.BriefLength))
		}
	}
	if f.NextCursor != "" {
		fmt.Fprintf(&out, "\nNext page: cursor = %s", f.NextCursor)
	}
	return out.String()
}

func (t scriptTools) search(ctx context.Context, _ tool.Call, in scriptSearchIn) (FoundScripts, error) {
	q := artifact.Query{Tags: []string{scriptTag}, Without: artifact.RunTag, Creator: in.Creator, Vibe: in.Vibe, Limit: in.Limit, Cursor: in.Cursor}
	switch {
	case strings.HasPrefix(in.Tag, "type:"):
		q.Tags = []string{in.Tag}
	case in.Tag != "":
		q.Tags = append(q.Tags, in.Tag)
	}
	if in.Parent != "" {
		parent, err := t.scripts.Resolve(ctx, in.Parent)
		if err != nil {
			return FoundScripts{}, err
		}
		q.Parent = parent
	}
	page, err := t.scripts.Search(ctx, q)
	if err != nil {
		return FoundScripts{}, err
	}
	f := FoundScripts{Scripts: make([]ScriptView, len(page.Artifacts)), Total: page.Total, NextCursor: page.Next}
	for i := range page.Artifacts {
		f.Scripts[i] = scriptView(&page.Artifacts[i])
	}
	return f, nil
}

// GotScript is the result of script_get.
type GotScript struct {
	ScriptView
	Content   string   `json:"content"`
	Ancestors []string `json:"ancestors" jsonschema:"hashes of the scripts it was derived from, nearest first"`
	Children  []string `json:"children" jsonschema:"hashes of the scripts derived from it, newest first"`
}

// Text returns the source.
func (g GotScript) Text() string { return g.Content }

func (t scriptTools) get(ctx context.Context, _ tool.Call, in hashIn) (GotScript, error) {
	const family = 20
	ref, source, err := Load(ctx, t.scripts, in.ScriptHash)
	if err != nil {
		return GotScript{}, err
	}
	a, err := t.scripts.Get(ctx, ref)
	if err != nil {
		return GotScript{}, err
	}
	ancestors, err := t.scripts.Ancestors(ctx, ref, family)
	if err != nil {
		return GotScript{}, err
	}
	children, err := t.scripts.Children(ctx, ref, family)
	if err != nil {
		return GotScript{}, err
	}
	return GotScript{scriptView(&a), source, hashes(ancestors), hashes(children)}, nil
}

func hashes(artifacts []artifact.Artifact) []string {
	all := make([]string, len(artifacts))
	for i := range artifacts {
		all[i] = artifacts[i].Hash.String()
	}
	return all
}

// recentScripts returns the newest stored scripts.
func recentScripts(ctx context.Context, s *artifact.Store, limit int) []artifact.Artifact {
	page, err := s.Search(ctx, artifact.Query{Tags: []string{scriptTag}, Limit: limit})
	if err != nil {
		return nil // no suggestions
	}
	return page.Artifacts
}

type publishIn struct {
	ScriptHash string `json:"script_hash" jsonschema:"hash of a stored script, or at least its first 12 digits" min:"12" max:"70"`
	Name       string `json:"name,omitempty" jsonschema:"name of the tool; default: the name from describe()" max:"48"`
}

// PublishedTool is a version of a published script.
type PublishedTool struct {
	Name        string    `json:"name" jsonschema:"name of the tool"`
	Hash        string    `json:"hash"`
	Version     int       `json:"version" jsonschema:"counts the scripts published under the name"`
	Publisher   string    `json:"publisher,omitempty"`
	PublishedAt time.Time `json:"published_at"`
	Current     bool      `json:"current" jsonschema:"current version"`
}

func publishedTool(ctx context.Context, v publish.Version) PublishedTool {
	return PublishedTool{principal.Of(ctx).NameOf(v.Name), v.Hash.String(), v.Version, v.Publisher, v.PublishedAt.UTC(), v.Current}
}

// Text returns one line.
func (p PublishedTool) Text() string {
	return fmt.Sprintf("%s is now a tool: version %d, script %s.", p.Name, p.Version, p.Hash[:cas.MinPrefix])
}

func (t scriptTools) publication(ctx context.Context, in publishIn) (publish.Request, error) {
	ref, err := t.scripts.Resolve(ctx, strings.TrimSpace(in.ScriptHash))
	return publish.Request{Hash: ref, Name: in.Name, Publisher: principal.Of(ctx).ID}, err
}

func (t scriptTools) refusesPublication(ctx context.Context, _ tool.Call, in publishIn) error {
	want, err := t.publication(ctx, in)
	if err != nil {
		return err
	}
	return t.publisher.CheckRequest(ctx, want)
}

func (t scriptTools) publish(ctx context.Context, _ tool.Call, in publishIn) (PublishedTool, error) {
	want, err := t.publication(ctx, in)
	if err != nil {
		return PublishedTool{}, err
	}
	v, err := t.publisher.Publish(ctx, want)
	if err != nil {
		return PublishedTool{}, err
	}
	return publishedTool(ctx, v), nil
}

type toolNameIn struct {
	Name string `json:"name" jsonschema:"name of a published script" min:"1"`
}

// Unpublished is the result of script_unpublish.
type Unpublished struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed" jsonschema:"false if there was no such tool"`
}

// Text returns one line.
func (u Unpublished) Text() string {
	if !u.Removed {
		return fmt.Sprintf("There is no published script %s.", u.Name)
	}
	return fmt.Sprintf("%s is no longer a tool. Its history stays stored.", u.Name)
}

func (t scriptTools) unpublish(ctx context.Context, _ tool.Call, in toolNameIn) (Unpublished, error) {
	removed, err := t.publisher.Unpublish(ctx, in.Name)
	return Unpublished{in.Name, removed}, err
}

// PublishedHistory is the result of script_history.
type PublishedHistory struct {
	Name     string          `json:"name"`
	Versions []PublishedTool `json:"versions" jsonschema:"newest first"`
}

// Text lists the versions.
func (h PublishedHistory) Text() string {
	lines := make([]string, len(h.Versions))
	for i, v := range h.Versions {
		lines[i] = fmt.Sprintf("%s version %d: %s, %s", h.Name, v.Version, v.Hash[:cas.MinPrefix], v.PublishedAt.Format(time.RFC3339))
		if v.Current {
			lines[i] += " (current)"
		}
	}
	return strings.Join(lines, "\n")
}

func (t scriptTools) history(ctx context.Context, _ tool.Call, in toolNameIn) (PublishedHistory, error) {
	versions, err := t.publisher.History(ctx, in.Name)
	if err != nil {
		return PublishedHistory{}, err
	}
	h := PublishedHistory{Name: in.Name, Versions: make([]PublishedTool, len(versions))}
	for i, v := range versions {
		h.Versions[i] = publishedTool(ctx, v)
	}
	return h, nil
}

// NewSourceWriter stores the scripts of a folder as script_store does, each with a tag that
// names its file.
func NewSourceWriter(r *script.Runner, s *artifact.Store) publish.SourceWriter {
	return sourceWriter{scriptTools{runner: r, scripts: s}}
}

type sourceWriter struct{ tools scriptTools }

// storeLanguage returns script_store's name for the language of a file.
func storeLanguage(file string) string {
	if ext := filepath.Ext(file); ext == ".ts" || ext == ".mts" {
		return "typescript"
	}
	return script.LanguageOf(file)
}

// Store stores a script as derived from the one it replaces. If the replaced one is
// itself derived from this script, the stored relation stays unchanged.
func (k sourceWriter) Store(ctx context.Context, content []byte, file string, parent cas.Ref) (cas.Ref, error) {
	in := storeIn{Content: string(content), Tags: []string{"file:" + file}, Creator: "scripts folder", Language: storeLanguage(file)}
	if !parent.IsZero() {
		in.Parent = parent.String()
	}
	stored, err := k.tools.store(ctx, tool.Call{}, in)
	if fault.CodeOf(err) == fault.Conflict && in.Parent != "" {
		in.Parent = ""
		stored, err = k.tools.store(ctx, tool.Call{}, in)
	}
	if err != nil {
		return cas.Ref{}, err
	}
	return cas.Parse(stored.Hash)
}
