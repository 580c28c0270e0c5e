package hootenanny

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/personal"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) contentTools() []toolset.Tool {
	return []toolset.Tool{
		define("cas_store", puts(), h.casStore),
		define("cas_inspect", reads(), h.casInspect),
		define("cas_get", reads(), h.casGet),
		define("cas_upload_file", puts(), h.casUploadFile),
		define("cas_stats", reads(), h.casStats),
	}
}

// maxInline is how many bytes of content fit into one call as text.
const maxInline = 32 << 20

type casStoreIn struct {
	Content  string `json:"content_base64" jsonschema:"the content, in base64"`
	MIMEType string `json:"mime_type" jsonschema:"what it is, such as audio/midi or text/plain" min:"1" max:"256"`
}

// StoredContent is the result of storing a content.
type StoredContent struct {
	Hash     string `json:"hash" jsonschema:"identifies the content; the first 12 digits or more suffice"`
	Size     int64  `json:"size_bytes"`
	MIMEType string `json:"mime_type"`
	Source   string `json:"source_path,omitempty" jsonschema:"the file it was read from"`
}

// Text is one line.
func (s StoredContent) Text() string {
	return fmt.Sprintf("Stored %s as %s", plural.Count(s.Size, "byte"), s.Hash)
}

func (h *Backend) casStore(ctx context.Context, _ tool.Call, in casStoreIn) (StoredContent, error) {
	data, err := decodeBase64(in.Content)
	if err != nil {
		return StoredContent{}, err
	}
	c, err := h.files.PutFile(ctx, bytes.NewReader(data), in.MIMEType)
	return StoredContent{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME}, err
}

// decodeBase64 accepts all common forms of base64: with or without padding, both
// alphabets, and line breaks.
func decodeBase64(text string) ([]byte, error) {
	if len(text) > 2*maxInline {
		return nil, fault.New(fault.Limit, "the content has %d characters", len(text)).WithHint("upload large content as a file, or with POST /cas")
	}
	text = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "").Replace(text)
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, invalid("the content is not base64: %v", err).WithHint("encode it with a base64 function of your language")
	}
	return data, nil
}

type hashIn struct {
	Hash string `json:"hash" jsonschema:"hash of a content, or its first 12 digits or more" min:"12" max:"80"`
}

// ContentInfo describes a content.
type ContentInfo struct {
	Hash     string `json:"hash"`
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"size_bytes"`
	Exists   bool   `json:"exists"`
	Path     string `json:"local_path,omitempty" jsonschema:"its file on the server; scripts may read it"`
	Preview  string `json:"preview,omitempty" jsonschema:"the beginning, if it is text"`
	URL      string `json:"url,omitempty" jsonschema:"where it can be fetched"`
}

// Text is one line.
func (i ContentInfo) Text() string {
	return fmt.Sprintf("%s: %s, %s", i.Hash, i.MIMEType, plural.Count(i.Size, "byte"))
}

func (h *Backend) casInspect(ctx context.Context, _ tool.Call, in hashIn) (ContentInfo, error) {
	c, err := h.files.FindFile(ctx, in.Hash)
	if err != nil {
		return ContentInfo{}, err
	}
	i := ContentInfo{Hash: c.Hash.String(), MIMEType: c.MIME, Size: c.Size, Exists: true, Path: c.Path}
	if base := h.options.URL(); base != "" {
		i.URL = base + "/cas/" + i.Hash
	}
	i.Preview, err = h.preview(ctx, c)
	return i, err
}

// preview returns the beginning of a text.
func (h *Backend) preview(ctx context.Context, c Content) (string, error) {
	const limit = 200
	if !strings.HasPrefix(c.MIME, "text/") && c.MIME != "application/json" {
		return "", nil
	}
	r, err := h.files.Open(ctx, c.Hash)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	head, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return "", err
	}
	for i := 0; i < utf8.UTFMax && !utf8.Valid(head) && len(head) > 0; i++ { // it may end within a character
		head = head[:len(head)-1]
	}
	if !utf8.Valid(head) {
		return "", nil
	}
	return string(head), nil
}

type casGetIn struct {
	hashIn
	Offset int64 `json:"offset,omitempty" jsonschema:"where to begin, in bytes" min:"0"`
	Length int64 `json:"length,omitempty" jsonschema:"number of bytes; default: up to the end" min:"1" max:"33554432"`
}

// ContentData is the bytes of a content, or a part of them.
type ContentData struct {
	Hash     string `json:"hash"`
	Size     int64  `json:"size_bytes" jsonschema:"size of the whole content"`
	MIMEType string `json:"mime_type"`
	Offset   int64  `json:"offset,omitempty" jsonschema:"offset of the part in the content"`
	Content  string `json:"content_base64" jsonschema:"the content or the requested part, in base64"`
}

// decodedLen is the number of bytes that padded base64 stands for.
func decodedLen(text string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(text, "=")))
}

// Text is one line.
func (g ContentData) Text() string {
	return fmt.Sprintf("%d of %d bytes of %s", decodedLen(g.Content), g.Size, g.MIMEType)
}

func (h *Backend) casGet(ctx context.Context, _ tool.Call, in casGetIn) (ContentData, error) {
	c, data, err := h.readPart(ctx, in)
	if err != nil {
		return ContentData{}, err
	}
	return ContentData{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME, Offset: in.Offset, Content: base64.StdEncoding.EncodeToString(data)}, nil
}

// readPart reads the requested part of a content.
func (h *Backend) readPart(ctx context.Context, in casGetIn) (Content, []byte, error) {
	if in.Offset == 0 && in.Length == 0 {
		return h.read(ctx, in.Hash, maxInline)
	}
	c, err := h.files.FindFile(ctx, in.Hash)
	if err != nil {
		return Content{}, nil, err
	}
	if in.Offset > c.Size {
		return Content{}, nil, invalid("offset %d is past the end", in.Offset).WithHint("the content has %d bytes", c.Size)
	}
	r, err := h.files.Open(ctx, c.Hash)
	if err != nil {
		return Content{}, nil, err
	}
	defer func() { _ = r.Close() }()
	if err := skip(r, in.Offset); err != nil {
		return Content{}, nil, err
	}
	length := in.Length
	if length == 0 {
		length = maxInline
	}
	data, err := io.ReadAll(io.LimitReader(r, length))
	return c, data, err
}

// skip skips the first n bytes.
func skip(r io.Reader, n int64) error {
	if seeker, ok := r.(io.Seeker); ok {
		_, err := seeker.Seek(n, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}

// read reads a whole content of at most limit bytes.
func (h *Backend) read(ctx context.Context, name string, limit int64) (Content, []byte, error) {
	c, err := h.files.FindFile(ctx, name)
	if err != nil {
		return Content{}, nil, err
	}
	if c.Size > limit {
		return Content{}, nil, fault.New(fault.Limit, "content %s has %d bytes", c.Hash.Short(), c.Size).
			WithHint("at most %d bytes can be read here; fetch it from GET /cas/%s", limit, c.Hash)
	}
	r, err := h.files.Open(ctx, c.Hash)
	if err != nil {
		return Content{}, nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	return c, data, err
}

type uploadIn struct {
	FilePath string `json:"file_path" jsonschema:"path of a file on the server, in a folder that is open to scripts" min:"1" max:"4096"`
	MIMEType string `json:"mime_type" jsonschema:"what it is, such as audio/midi" min:"1" max:"256"`
}

func (h *Backend) casUploadFile(ctx context.Context, _ tool.Call, in uploadIn) (StoredContent, error) {
	file, err := h.openFile(in.FilePath)
	if err != nil {
		return StoredContent{}, err
	}
	defer func() { _ = file.Close() }()
	c, err := h.files.PutFile(ctx, file, in.MIMEType)
	return StoredContent{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME, Source: in.FilePath}, err
}

// openFile opens a file inside one of the allowed folders, which neither ".." nor a
// symbolic link can leave.
func (h *Backend) openFile(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, invalid("%s: the path is relative", path).WithHint("give an absolute path on the server, such as that of temp.path(name)")
	}
	for _, folder := range h.options.Folders {
		inside, err := filepath.Rel(folder, filepath.Clean(path))
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		return openInside(folder, inside, path)
	}
	return nil, fault.New(fault.Denied, "%s: files there may not be uploaded", path).
		WithHint("put it into a folder of scripts.read or scripts.write, or send it with cas_store or POST /cas")
}

func openInside(folder, inside, path string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fault.New(fault.NotFound, "%s: no such file", path)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(inside)
	switch {
	case err != nil && os.IsPermission(err):
		return nil, fault.New(fault.Denied, "%s: permission denied", path)
	case err != nil:
		return nil, fault.New(fault.NotFound, "%s: no such file", path)
	case !info.Mode().IsRegular():
		return nil, invalid("%s: is not a file", path)
	}
	file, err := root.Open(inside)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "open file to upload")
	}
	return file, nil
}

// StoreStats is the result of cas_stats: the number and size of all contents.
type StoreStats struct {
	Items  int64  `json:"total_items"`
	Bytes  int64  `json:"total_bytes"`
	Folder string `json:"cas_dir,omitempty"`
}

// Text is one line.
func (c StoreStats) Text() string {
	return plural.Count(c.Items, "content") + ", " + plural.Count(c.Bytes, "byte")
}

func (h *Backend) casStats(ctx context.Context, _ tool.Call, _ noArguments) (StoreStats, error) {
	items, bytes, err := h.files.Stats(ctx)
	return StoreStats{Items: items, Bytes: bytes, Folder: h.files.Folder()}, err
}

// StoredContents lists the columns with hashes of contents. Whoever plays or lists one must
// have it, so none of them keeps it.
func StoredContents() []cas.Column {
	const why = "whoever uses it must have the content"
	return []cas.Column{
		{Table: "hoot_variations", Name: "hash", Why: why},
		{Table: "hoot_metadata", Name: "hash", Why: why},
		{Table: "hoot_regions", Name: "content_id", Why: why},
	}
}

// Personal lists the tables with what a person added to artifacts, and opened. Timelines and
// identities of devices are of the studio, which all users share.
func Personal() []personal.Table {
	const of = "(OWNER(owner) OR OWNER(person))"
	return []personal.Table{
		{Name: "hoot_variations", Where: of}, {Name: "hoot_metadata", Where: of},
		{Name: "hoot_project_sessions", Where: "OWNER(session)"},
	}
}

// Locator uses the music backend of this process, or a remote one while an upstream has
// the music namespace. Upstreams come and go, so it decides at each call.
type Locator struct {
	Local    *Backend
	Remote   Remote
	IsRemote func() bool
}

// reader is what both kinds of backend offer beside their tools.
type reader interface {
	Artifact(ctx context.Context, id string) (ArtifactView, error)
	Artifacts(ctx context.Context, q artifact.Query) (ArtifactList, error)
	Garden(ctx context.Context, project string) (GardenView, error)
	Content(ctx context.Context, name string) (Content, error)
	Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error)
	PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error)
}

func (l Locator) current() reader {
	if l.IsRemote() {
		return l.Remote
	}
	return l.Local
}

// Artifact returns the artifact that an id or a hash names.
func (l Locator) Artifact(ctx context.Context, id string) (ArtifactView, error) {
	return l.current().Artifact(ctx, id)
}

// Artifacts returns the artifacts that match a search.
func (l Locator) Artifacts(ctx context.Context, q artifact.Query) (ArtifactList, error) {
	return l.current().Artifacts(ctx, q)
}

// Garden returns the transport and the whole timeline of a project; "" is the default one.
func (l Locator) Garden(ctx context.Context, project string) (GardenView, error) {
	return l.current().Garden(ctx, project)
}

// Content returns what a hash, a unique prefix of one, or an artifact's id names.
func (l Locator) Content(ctx context.Context, name string) (Content, error) {
	return l.current().Content(ctx, name)
}

// Open opens a content for reading.
func (l Locator) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return l.current().Open(ctx, ref)
}

// PutContent stores content of a MIME type.
func (l Locator) PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error) {
	return l.current().PutContent(ctx, r, mime)
}

// Contents is the content store for scripts: our own, together with that of a remote
// backend, so that a hash means the same to a script and to the music tools it calls.
type Contents struct {
	Files    *artifact.Files
	Remote   Remote
	IsRemote func() bool
}

// Put stores all of r.
func (c Contents) Put(ctx context.Context, r io.Reader, about artifact.Result) (Content, error) {
	if !c.IsRemote() {
		return c.Files.PutResult(ctx, r, about)
	}
	stored, err := c.Remote.PutContent(ctx, r, about.MIME)
	if err != nil {
		return Content{}, err
	}
	return c.Files.FindFile(ctx, stored.Hash)
}

// Find returns the content that a hash or a unique prefix of one names.
func (c Contents) Find(ctx context.Context, hash string) (Content, error) {
	found, err := c.Files.FindFile(ctx, hash)
	if err == nil || !c.IsRemote() {
		return found, err
	}
	return c.Remote.Content(ctx, hash)
}

// Artifact returns the content of an artifact, named by its id or hash.
func (c Contents) Artifact(ctx context.Context, id string) (Content, error) {
	if c.IsRemote() {
		if a, err := c.Remote.Artifact(ctx, id); err == nil {
			return c.Find(ctx, a.Hash)
		}
	}
	return c.Files.ArtifactFile(ctx, id)
}

// Open opens a content for reading.
func (c Contents) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return c.Files.Open(ctx, ref)
}

// Folder is the folder with the contents as files.
func (c Contents) Folder() string { return c.Files.Folder() }

// LocalTools are the tools of a backend in this process. They are not listed while an
// upstream has the music namespace.
type LocalTools struct {
	tool.Source
	IsRemote func() bool
}

// Tools lists them.
func (t *LocalTools) Tools(ctx context.Context) ([]tool.Info, error) {
	if t.IsRemote() {
		return nil, nil
	}
	return t.Source.Tools(ctx)
}

// The methods below are for HTTP endpoints and resources.

// Artifact returns the artifact with that id or hash.
func (h *Backend) Artifact(ctx context.Context, id string) (ArtifactView, error) {
	a, err := h.get(ctx, id)
	if err != nil {
		return ArtifactView{}, err
	}
	return h.view(a), nil
}

// Artifacts returns a page of a search.
func (h *Backend) Artifacts(ctx context.Context, q artifact.Query) (ArtifactList, error) {
	page, err := h.files.Search(ctx, q)
	if err != nil {
		return ArtifactList{}, err
	}
	return h.listed(ctx, page)
}

// Content returns the content with that hash, prefix of a hash, or artifact id.
func (h *Backend) Content(ctx context.Context, name string) (Content, error) {
	return h.files.FindFile(ctx, name)
}

// Open opens a content for reading.
func (h *Backend) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return h.files.Open(ctx, ref)
}

// PutContent stores content with a MIME type.
func (h *Backend) PutContent(ctx context.Context, r io.Reader, mime string) (StoredContent, error) {
	kind, err := mediaType(mime)
	if err != nil {
		return StoredContent{}, err
	}
	c, err := h.files.PutFile(ctx, r, kind)
	return StoredContent{Hash: c.Hash.String(), Size: c.Size, MIMEType: c.MIME}, err
}

// Garden returns the transport and the whole timeline of a project; "" is the default one.
func (h *Backend) Garden(ctx context.Context, project string) (GardenView, error) {
	if project == "" {
		project = DefaultProject
	}
	return h.look(ctx, project, gardenQueryIn{})
}
