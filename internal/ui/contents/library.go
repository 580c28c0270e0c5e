package contents

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/music/abc"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// Library lists, serves and deletes everything that is stored: scripts, published tools
// and artifacts of every kind. Unlike Server it does not need the music tools.
type Library struct {
	Files *artifact.Files
	// Published returns the scripts that are tools of the caller now.
	Published func(context.Context) map[cas.Ref]PublishedAs
	// NameOf returns the name of an owner; nil: their IDs are shown.
	NameOf func(id string) string
}

// Item is an artifact in the library.
type Item struct {
	ID          string       `json:"id"`
	Hash        string       `json:"hash"`
	Kind        string       `json:"kind"`
	MIMEType    string       `json:"mime_type"`
	Size        int64        `json:"size_bytes"`
	Name        string       `json:"name,omitempty"`
	Description string       `json:"description,omitempty"`
	Tags        []string     `json:"tags"`
	Creator     string       `json:"creator,omitempty"`
	Job         string       `json:"job,omitempty"`    // which stored it first
	Owner       string       `json:"owner,omitempty"`  // whose it is, if it is somebody else's
	Shared      string       `json:"shared,omitempty"` // what its owner permits, if it is seen through a share
	Parent      string       `json:"parent_id,omitempty"`
	CreatedAt   time.Time    `json:"created_at"`
	Tool        *PublishedAs `json:"tool,omitempty"` // if it is a tool now
	Annotations []Remark     `json:"annotations,omitempty"`
}

// PublishedAs is the tool that a script is.
type PublishedAs struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// Remark is an annotation of an artifact.
type Remark struct {
	Message   string    `json:"message"`
	Vibe      string    `json:"vibe,omitempty"`
	Source    string    `json:"source,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// Items is a page of the library.
type Items struct {
	Items []Item `json:"items"`
	Total int    `json:"total"`
	Next  string `json:"next_cursor,omitempty"`
}

// kind is a kind of artifacts with the MIME types that it has.
type kind struct {
	name  string
	types []string
}

// kinds are all kinds; the first that matches counts. Binary is everything else.
var kinds = []kind{
	{script, []string{"text/x-lua", "text/javascript", "text/typescript"}},
	{"midi", []string{"audio/midi", "audio/x-midi", "audio/mid", "audio/sp-midi"}},
	{"abc", []string{"text/vnd.abc%"}},
	{"audio", []string{"audio/%"}},
	{"image", []string{"image/%"}},
	{"json", []string{"application/json%", "application/%+json"}},
	{"text", []string{"text/%"}},
}

const (
	script = "script"
	binary = "binary"
	result = "result" // in queries: everything but scripts
)

// typesOf returns the types of a kind for a query: its own, without those of kinds before.
func typesOf(name string) ([]string, bool) {
	var others []string
	if name == result {
		scripts, _ := typesOf(script)
		for _, t := range scripts {
			others = append(others, "!"+t)
		}
		return others, true
	}
	for _, k := range kinds {
		if k.name == name {
			return append(others, k.types...), true
		}
		for _, t := range k.types {
			others = append(others, "!"+t)
		}
	}
	return others, name == binary
}

func kindOf(mime string) string {
	for _, k := range kinds {
		if slices.ContainsFunc(k.types, func(pattern string) bool { return artifact.Like(pattern, mime) }) {
			return k.name
		}
	}
	return binary
}

// Routes are the library's paths and the scope that each requires.
func (l *Library) Routes() []principal.Route {
	route := func(pattern string, serve func(w http.ResponseWriter, r *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.MCP, Write: withoutPaths(unrestricted(serve))}
	}
	return []principal.Route{
		route("GET /api/v1/library", l.list),
		route("GET /api/v1/library/{id}", l.one),
		route("GET /api/v1/library/{id}/content", l.content),
		route("GET /api/v1/library/{id}/midi", l.midi),
		route("DELETE /api/v1/library/{id}", l.remove),
		route("POST /api/v1/library/{id}/restore", l.restore).Reads(principal.NoBody),
	}
}

func (l *Library) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	q := artifact.Query{
		Tags: query["tag"], Without: artifact.RunTag, Creator: query.Get("creator"), Vibe: query.Get("find"), Cursor: query.Get("cursor"), Limit: limit,
	}
	wanted := query.Get("kind")
	if wanted == "tool" {
		return l.tools(w, r, q)
	}
	if wanted != "" {
		known := false
		if q.MIME, known = typesOf(wanted); !known {
			return fault.New(fault.InvalidParams, "kind: %q is not a kind", wanted).WithHint("use tool, script, result, midi, abc, audio, image, json, text or binary")
		}
	}
	page, err := l.Files.Store.Search(r.Context(), q)
	if err != nil {
		return err
	}
	published := l.Published(r.Context())
	out := Items{Items: []Item{}, Total: page.Total, Next: page.Next}
	for i := range page.Artifacts {
		item, err := l.itemOf(r.Context(), &page.Artifacts[i], published)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, item)
	}
	return sent(w, out, nil)
}

// tools lists the scripts that are tools now.
func (l *Library) tools(w http.ResponseWriter, r *http.Request, q artifact.Query) error {
	published := l.Published(r.Context())
	out := Items{Items: []Item{}}
	for ref := range published {
		a, err := l.Files.Get(r.Context(), ref)
		if fault.CodeOf(err) == fault.NotFound {
			continue // a file in the folder of scripts
		}
		if err != nil {
			return err
		}
		item, err := l.itemOf(r.Context(), &a, published)
		if err != nil {
			return err
		}
		words := strings.ToLower(item.Name + " " + item.Description + " " + item.Tool.Name + " " + strings.Join(item.Tags, " "))
		if strings.Contains(words, strings.ToLower(q.Vibe)) {
			out.Items = append(out.Items, item)
		}
	}
	slices.SortFunc(out.Items, func(a, b Item) int { return b.CreatedAt.Compare(a.CreatedAt) })
	out.Total = len(out.Items)
	return sent(w, out, nil)
}

// shownTags returns tags without those that say what an artifact is.
func shownTags(tags []string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		return tag == "kind:script" || tag == artifact.RunTag || tag == artifact.ResultTag || strings.HasPrefix(tag, artifact.JobTag)
	})
}

// jobOf returns the job that stored an artifact first.
func jobOf(tags []string) string {
	for _, tag := range tags {
		if id, ok := strings.CutPrefix(tag, artifact.JobTag); ok {
			return id
		}
	}
	return ""
}

// itemOf returns an artifact as the caller sees it.
func (l *Library) itemOf(ctx context.Context, a *artifact.Artifact, published map[cas.Ref]PublishedAs) (Item, error) {
	item := Item{
		ID: artifact.ID(a.Hash), Hash: a.Hash.String(), Kind: kindOf(a.MIME), MIMEType: a.MIME, Size: a.Size, Name: a.Name, Description: a.Description,
		Tags: append([]string{}, shownTags(a.Tags)...), Creator: a.Creator, Job: jobOf(a.Tags), CreatedAt: a.CreatedAt.UTC(),
	}
	if !a.Parent.IsZero() {
		item.Parent = artifact.ID(a.Parent)
	}
	if v, ok := published[a.Hash]; ok {
		item.Tool = &v
	}
	for _, n := range a.Annotations {
		item.Annotations = append(item.Annotations, Remark{n.Message, n.Vibe, n.Source, n.Time.UTC()})
	}
	if a.Owner == principal.OwnerOf(ctx) || a.Owner == (principal.Owner{}) {
		return item, nil
	}
	item.Owner = a.Owner.ID
	if l.NameOf != nil {
		item.Owner = l.NameOf(a.Owner.ID)
	}
	level, err := l.Files.Shared(ctx, a)
	item.Shared = string(level)
	return item, err
}

// writeItem sends an artifact as the caller sees it.
func (l *Library) writeItem(w http.ResponseWriter, r *http.Request, a *artifact.Artifact) error {
	item, err := l.itemOf(r.Context(), a, l.Published(r.Context()))
	if err == nil {
		httpjson.JSON(w, http.StatusOK, item)
	}
	return err
}

// find returns the artifact that a path names.
func (l *Library) find(r *http.Request) (a artifact.Artifact, err error) {
	ref, err := l.Files.Resolve(r.Context(), r.PathValue("id"))
	if err != nil {
		return a, err
	}
	return l.Files.Get(r.Context(), ref)
}

func (l *Library) one(w http.ResponseWriter, r *http.Request) error {
	a, err := l.find(r)
	if err != nil {
		return err
	}
	return l.writeItem(w, r, &a)
}

func (l *Library) content(w http.ResponseWriter, r *http.Request) error {
	a, err := l.find(r)
	if err != nil {
		return err
	}
	file, err := l.Files.ArtifactFile(r.Context(), artifact.ID(a.Hash))
	if err != nil {
		return err
	}
	return serveFile(w, r, l.Files.Open, file)
}

// maxTune limits what is converted for a preview.
const maxTune = 1 << 20

// midi converts a tune in ABC notation.
func (l *Library) midi(w http.ResponseWriter, r *http.Request) error {
	a, err := l.find(r)
	if err != nil {
		return err
	}
	if kindOf(a.MIME) != "abc" {
		return fault.New(fault.InvalidParams, "%s is not in ABC notation", artifact.ID(a.Hash))
	}
	text, err := l.Files.Read(r.Context(), a.Hash, maxTune)
	if err != nil {
		return err
	}
	tune, found := abc.Parse(string(text))
	if err := found.Err(); err != nil {
		return err
	}
	file, err := abc.ToMIDI(tune, abc.Options{})
	if err != nil {
		return err
	}
	data, err := file.Encode()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "audio/midi")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "private, max-age=3600")
	_, _ = w.Write(data) // the client may have disconnected
	return nil
}

// remove deletes an artifact, which can be restored for some time, or a content that is
// none.
func (l *Library) remove(w http.ResponseWriter, r *http.Request) error {
	a, err := l.find(r)
	if fault.CodeOf(err) == fault.NotFound {
		c, err := l.Files.Release(r.Context(), r.PathValue("id"))
		return sent(w, Item{Hash: c.Hash.String(), Kind: kindOf(c.MIME), MIMEType: c.MIME, Size: c.Size, Tags: []string{}, CreatedAt: c.CreatedAt.UTC()}, err)
	}
	if err != nil {
		return err
	}
	if v, ok := l.Published(r.Context())[a.Hash]; ok {
		return fault.New(fault.Conflict, "this script is the tool %s", v.Name).WithHint("unpublish the tool first")
	}
	if a, err = l.Files.Delete(r.Context(), a.Hash); err != nil {
		return err
	}
	return l.writeItem(w, r, &a)
}

func (l *Library) restore(w http.ResponseWriter, r *http.Request) error {
	ref, err := cas.Parse(r.PathValue("id"))
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "restore").WithHint("use the whole hash of the artifact")
	}
	a, err := l.Files.Restore(r.Context(), ref)
	if err != nil {
		return err
	}
	return l.writeItem(w, r, &a)
}
