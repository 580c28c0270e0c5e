package hootenanny

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Content is data stored under its hash.
type Content = cas.File

// Artifact is a stored artifact with what the music tools add to it.
type Artifact struct {
	artifact.Artifact
	set      string // of variations; "" if none
	index    int
	metadata json.RawMessage
}

// ID is the id of the artifact.
func (a *Artifact) ID() string { return artifact.ID(a.Hash) }

// stored returns the artifact with that id or hash, without its variation and metadata.
func (h *Backend) stored(ctx context.Context, id string) (artifact.Artifact, error) {
	ref, err := h.files.Resolve(ctx, id)
	if err != nil {
		return artifact.Artifact{}, err
	}
	return h.files.Get(ctx, ref)
}

// described returns artifacts with their variations and metadata.
func (h *Backend) described(ctx context.Context, stored ...artifact.Artifact) ([]Artifact, error) {
	list := make([]Artifact, len(stored))
	for i, a := range stored {
		list[i].Artifact = a
	}
	return list, h.addDetails(ctx, list)
}

func (h *Backend) artifactTools() []toolset.Tool {
	return []toolset.Tool{
		define("artifact_upload", puts(), h.artifactUpload),
		define("artifact_create", puts(), h.artifactCreate),
		define("artifact_get", reads(), h.artifactGet),
		define("artifact_list", reads(), h.artifactList),
		define("add_annotation", adds(), h.addAnnotation),
	}
}

// Lineage is the arguments that all tools that create artifacts have in common.
type Lineage struct {
	Tags    []string `json:"tags,omitempty" jsonschema:"words to find it by, such as mood:calm" max:"64"`
	Creator string   `json:"creator,omitempty" jsonschema:"who made it" max:"256"`
	Parent  string   `json:"parent_id,omitempty" jsonschema:"the artifact it was made from" max:"80"`
	Set     string   `json:"variation_set_id,omitempty" jsonschema:"name of the set of variations it belongs to" max:"128"`
	Index   int      `json:"variation_index,omitempty" jsonschema:"its number in the set; default: the next free one" min:"0" max:"1000000"`
}

// ArtifactView is an artifact in the results of tools.
type ArtifactView struct {
	ID          string                `json:"id"`
	ArtifactID  string                `json:"artifact_id" jsonschema:"the same as id"`
	Hash        string                `json:"content_hash"`
	MIMEType    string                `json:"mime_type"`
	Size        int64                 `json:"size_bytes"`
	Tags        []string              `json:"tags"`
	Creator     string                `json:"creator"`
	Created     time.Time             `json:"created_at"`
	Name        string                `json:"name,omitempty"`
	Description string                `json:"description,omitempty"`
	Parent      string                `json:"parent_id,omitempty"`
	Set         string                `json:"variation_set_id,omitempty"`
	Index       int                   `json:"variation_index,omitempty"`
	Metadata    toolset.Object        `json:"metadata,omitempty"`
	Annotations []artifact.Annotation `json:"annotations,omitempty"`
	URL         string                `json:"artifact_url,omitempty" jsonschema:"where its content can be fetched"`
}

// Text is one line.
func (v ArtifactView) Text() string {
	title := v.Name
	if title == "" {
		title = v.MIMEType
	}
	return fmt.Sprintf("%s: %s, %s, by %s [%s]", v.ID, title, plural.Count(v.Size, "byte"), v.Creator, strings.Join(v.Tags, ", "))
}

func (h *Backend) view(a Artifact) ArtifactView {
	id := a.ID()
	v := ArtifactView{
		ID: id, ArtifactID: id, Hash: a.Hash.String(), MIMEType: a.MIME, Size: a.Size, Tags: append([]string{}, a.Tags...), Creator: a.Creator,
		Created: a.CreatedAt.UTC(), Name: a.Name, Description: a.Description, Set: a.set, Index: a.index, Metadata: toolset.Object(a.metadata),
		Annotations: a.Annotations, URL: h.artifactURL(id),
	}
	if v.Creator == "" {
		v.Creator = unknown
	}
	if !a.Parent.IsZero() {
		v.Parent = artifact.ID(a.Parent)
	}
	return v
}

// unknown is shown for artifacts without a creator.
const unknown = "unknown"

// artifactURL is the URL of an artifact's content, or "".
func (h *Backend) artifactURL(id string) string {
	if base := h.options.URL(); base != "" {
		return base + "/artifact/" + id
	}
	return ""
}

// newArtifact describes an artifact to create.
type newArtifact struct {
	Lineage
	mime        string
	name        string
	description string
	metadata    json.RawMessage
	by          string // the tool
}

// create creates an artifact from content and stores its variation and metadata.
func (h *Backend) create(ctx context.Context, content io.Reader, m newArtifact) (Artifact, error) {
	kind, err := mediaType(m.mime)
	if err != nil {
		return Artifact{}, err
	}
	d := artifact.Details{MIME: kind, Tags: tagged(m), Untag: artifact.ResultTag, Creator: m.Creator, Name: m.name, Description: m.description}
	if m.Parent != "" {
		parent, err := h.stored(ctx, m.Parent)
		if err != nil {
			return Artifact{}, err
		}
		d.Parent = parent.Hash
	}
	a, _, err := h.files.Put(ctx, content, d)
	if err != nil {
		return Artifact{}, err
	}
	if err := h.storeDetails(ctx, &a, m); err != nil {
		return Artifact{}, err
	}
	list, err := h.described(ctx, a)
	return list[0], err
}

// mediaType validates a MIME type, which is sent unchanged as Content-Type.
func mediaType(text string) (string, error) {
	if text == "" {
		return "application/octet-stream", nil
	}
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || !strings.Contains(kind, "/") {
		return "", invalid("%q is not a MIME type", text).WithHint("use one such as audio/midi, audio/wav or text/plain")
	}
	return mime.FormatMediaType(kind, params), nil
}

// tagged adds the type and the tool to the tags of an artifact.
func tagged(m newArtifact) []string {
	tags := slices.Clone(m.Tags)
	if !slices.ContainsFunc(tags, func(t string) bool { return strings.HasPrefix(t, "type:") }) {
		tags = append(tags, "type:"+kindOf(m.mime))
	}
	if m.by != "" {
		tags = append(tags, "tool:"+m.by)
	}
	return tags
}

// kindOf is the type tag for a MIME type.
func kindOf(mime string) string {
	switch kind, sub, _ := strings.Cut(strings.ToLower(mime), "/"); {
	case strings.Contains(sub, "midi"), sub == "mid":
		return "midi"
	case strings.Contains(sub, "sf2"), strings.Contains(sub, "soundfont"):
		return "soundfont"
	case strings.Contains(sub, "vnd.abc"), strings.Contains(sub, "x-abc"):
		return "abc"
	case strings.Contains(sub, "lua"):
		return "lua"
	case kind == "application" && (sub == "json" || sub == "octet-stream"), kind == "":
		return "data"
	default:
		return kind
	}
}

type artifactUploadIn struct {
	uploadIn
	Name string `json:"name,omitempty" jsonschema:"a title" max:"256"`
	Lineage
}

// UploadedArtifact is an artifact created from a file.
type UploadedArtifact struct {
	ArtifactID string   `json:"artifact_id"`
	Hash       string   `json:"content_hash"`
	Size       int64    `json:"size_bytes"`
	MIMEType   string   `json:"mime_type"`
	Source     string   `json:"source_path"`
	Tags       []string `json:"tags"`
	Set        string   `json:"variation_set_id,omitempty"`
	Index      int      `json:"variation_index,omitempty"`
	URL        string   `json:"artifact_url,omitempty"`
}

// Text is one line.
func (u UploadedArtifact) Text() string {
	return fmt.Sprintf("Uploaded %s as %s", u.Source, u.ArtifactID)
}

func (h *Backend) artifactUpload(ctx context.Context, call tool.Call, in artifactUploadIn) (UploadedArtifact, error) {
	file, err := h.openFile(in.FilePath)
	if err != nil {
		return UploadedArtifact{}, err
	}
	defer func() { _ = file.Close() }()
	a, err := h.create(ctx, file, newArtifact{Lineage: in.Lineage, mime: in.MIMEType, name: in.Name, by: call.Ref.Name})
	if err != nil {
		return UploadedArtifact{}, err
	}
	return UploadedArtifact{
		ArtifactID: a.ID(), Hash: a.Hash.String(), Size: a.Size, MIMEType: a.MIME, Source: in.FilePath, Tags: a.Tags,
		Set: a.set, Index: a.index, URL: h.artifactURL(a.ID()),
	}, nil
}

type artifactCreateIn struct {
	Hash        string         `json:"cas_hash" jsonschema:"hash of its content" min:"12" max:"80"`
	MIMEType    string         `json:"mime_type,omitempty" jsonschema:"its MIME type; default: the type it was stored with" max:"256"`
	Name        string         `json:"name,omitempty" jsonschema:"a title" max:"256"`
	Description string         `json:"description,omitempty" jsonschema:"what it is, for people and searches" max:"8192"`
	Metadata    toolset.Object `json:"metadata,omitempty" jsonschema:"additional data to store with it"`
	Lineage
}

func (h *Backend) artifactCreate(ctx context.Context, call tool.Call, in artifactCreateIn) (ArtifactView, error) {
	c, err := h.files.FindFile(ctx, in.Hash)
	if err != nil {
		return ArtifactView{}, err
	}
	r, err := h.files.Open(ctx, c.Hash)
	if err != nil {
		return ArtifactView{}, err
	}
	defer func() { _ = r.Close() }()
	m := newArtifact{Lineage: in.Lineage, mime: in.MIMEType, name: in.Name, description: in.Description, metadata: json.RawMessage(in.Metadata), by: call.Ref.Name}
	if m.mime == "" {
		m.mime = c.MIME
	}
	a, err := h.create(ctx, r, m)
	return h.view(a), err
}

type artifactIn struct {
	ID string `json:"id" jsonschema:"id of an artifact, or its content's hash" min:"12" max:"80"`
}

func (h *Backend) artifactGet(ctx context.Context, _ tool.Call, in artifactIn) (ArtifactView, error) {
	a, err := h.get(ctx, in.ID)
	return h.view(a), err
}

// get returns an artifact with its variation and metadata.
func (h *Backend) get(ctx context.Context, id string) (Artifact, error) {
	a, err := h.stored(ctx, id)
	if err != nil {
		return Artifact{}, err
	}
	list, err := h.described(ctx, a)
	return list[0], err
}

type artifactListIn struct {
	Tag     string   `json:"tag,omitempty" jsonschema:"only those with this tag" max:"128"`
	Tags    []string `json:"tags,omitempty" jsonschema:"only those with all of these tags" max:"16"`
	Creator string   `json:"creator,omitempty" jsonschema:"only those of this creator" max:"256"`
	Vibe    string   `json:"vibe,omitempty" jsonschema:"words from annotations; the best matches first" max:"512"`
	Set     string   `json:"variation_set_id,omitempty" jsonschema:"only the variations of this set, in order" max:"128"`
	Limit   int      `json:"limit,omitempty" jsonschema:"maximum number; default 50" min:"1" max:"200"`
	Cursor  string   `json:"cursor,omitempty" jsonschema:"next_cursor of the previous result" max:"512"`
}

// ArtifactList is a page of artifacts.
type ArtifactList struct {
	Artifacts []ArtifactView `json:"artifacts"`
	Count     int            `json:"count"`
	Next      string         `json:"next_cursor,omitempty" jsonschema:"for the next page; missing at the end"`
}

// Text has one line per item.
func (l ArtifactList) Text() string {
	lines := []string{fmt.Sprintf("%d artifacts", l.Count)}
	for _, v := range l.Artifacts {
		lines = append(lines, v.Text())
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) artifactList(ctx context.Context, _ tool.Call, in artifactListIn) (ArtifactList, error) {
	if in.Limit == 0 {
		in.Limit = 50
	}
	if in.Set != "" {
		list, err := h.variations(ctx, in.Set, in.Limit)
		list = slices.DeleteFunc(list, func(a artifact.Artifact) bool {
			return in.Creator != "" && a.Creator != in.Creator || in.Tag != "" && !slices.Contains(a.Tags, in.Tag)
		})
		if err != nil {
			return ArtifactList{}, err
		}
		return h.listed(ctx, artifact.Page{Artifacts: list})
	}
	return h.Artifacts(ctx, artifact.Query{Tags: append(some(in.Tag), in.Tags...), Creator: in.Creator, Vibe: in.Vibe, Limit: in.Limit, Cursor: in.Cursor})
}

// listed returns a page of artifacts with their variations and metadata.
func (h *Backend) listed(ctx context.Context, page artifact.Page) (ArtifactList, error) {
	list, err := h.described(ctx, page.Artifacts...)
	if err != nil {
		return ArtifactList{}, err
	}
	views := make([]ArtifactView, len(list))
	for i, a := range list {
		views[i] = h.view(a)
	}
	return ArtifactList{Artifacts: views, Count: len(views), Next: page.Next}, nil
}

// some returns a list with the text, or an empty one if the text is empty.
func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

type annotationIn struct {
	ArtifactID string `json:"artifact_id" jsonschema:"id of an artifact, or its content's hash" min:"12" max:"80"`
	Message    string `json:"message" jsonschema:"text of the annotation" min:"1" max:"4096"`
	Vibe       string `json:"vibe,omitempty" jsonschema:"its mood in a few words, for searches" max:"512"`
	Source     string `json:"source,omitempty" jsonschema:"author of the annotation" max:"256"`
}

// AnnotatedArtifact is an artifact with one more annotation.
type AnnotatedArtifact struct {
	ArtifactID   string `json:"artifact_id"`
	AnnotationID string `json:"annotation_id"`
	Success      bool   `json:"success"`
}

// Text is one line.
func (a AnnotatedArtifact) Text() string { return "Annotated " + a.ArtifactID }

func (h *Backend) addAnnotation(ctx context.Context, _ tool.Call, in annotationIn) (AnnotatedArtifact, error) {
	ref, err := h.files.Resolve(ctx, in.ArtifactID)
	if err != nil {
		return AnnotatedArtifact{}, err
	}
	a, err := h.files.Annotate(ctx, ref, artifact.Annotation{Message: in.Message, Vibe: in.Vibe, Source: in.Source})
	if err != nil {
		return AnnotatedArtifact{}, err
	}
	id := artifact.ID(a.Hash)
	return AnnotatedArtifact{ArtifactID: id, AnnotationID: fmt.Sprintf("%s/%d", id, len(a.Annotations)), Success: true}, nil
}

// hashes returns the hashes of artifacts as stored in the database.
func hashes(list []Artifact) []string {
	all := make([]string, len(list))
	for i, a := range list {
		all[i] = a.Hash.String()
	}
	return all
}
