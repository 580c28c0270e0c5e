package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/ui/contents"
)

// farMusic is the music backend when it is another process, seen through its
// tools. A content that is asked for is copied into our own store, which names it
// by what is in it, so that nobody need believe the other side; from there it is
// served and read like any other.
type farMusic struct {
	tools tool.Source
	near  contentStore
}

// roundTrip calls a music tool and reads its answer into out.
func (f farMusic) ask(ctx context.Context, name string, args, out any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "%s", name)
	}
	result, err := f.tools.Call(ctx, tool.Call{Ref: tool.Ref{Space: hootenanny.Space, Name: name}, Args: raw})
	if err != nil {
		return err
	}
	view, err := result.View()
	if err != nil {
		return err
	}
	if view.IsError {
		return failureOf(view)
	}
	if err := json.Unmarshal(view.Structured, out); err != nil {
		return fault.Wrap(fault.Upstream, err, "read what %s.%s answered", hootenanny.Space, name)
	}
	return nil
}

// failureOf is what a tool says went wrong, with its code where it gives one.
func failureOf(view tool.View) error {
	var meta struct {
		Error *fault.Error `json:"luanette/error"`
	}
	if json.Unmarshal(view.Meta, &meta) == nil && meta.Error != nil && meta.Error.Code != "" {
		return meta.Error
	}
	return fault.New(fault.Upstream, "%s", view.Text())
}

// Artifact shows the artifact that an id or a hash names.
func (f farMusic) Artifact(ctx context.Context, id string) (view hootenanny.ArtifactView, err error) {
	return view, f.ask(ctx, "artifact_get", map[string]any{"id": id}, &view)
}

// Artifacts lists what a search finds.
func (f farMusic) Artifacts(ctx context.Context, q hootenanny.Search) (list hootenanny.ArtifactList, err error) {
	args := map[string]any{"limit": q.Limit}
	for name, value := range map[string]string{"creator": q.Creator, "vibe": q.Vibe, "cursor": q.Cursor} {
		if value != "" {
			args[name] = value
		}
	}
	if len(q.Tags) > 0 {
		args["tags"] = q.Tags
	}
	return list, f.ask(ctx, "artifact_list", args, &list)
}

// Garden is the transport and the whole timeline.
func (f farMusic) Garden(ctx context.Context) (view hootenanny.GardenView, err error) {
	return view, f.ask(ctx, "garden_query", map[string]any{}, &view)
}

// Content is what a hash, the beginning of one, or an artifact's id names; it is
// here afterwards.
func (f farMusic) Content(ctx context.Context, name string) (hootenanny.Content, error) {
	if near, err := f.near.Find(ctx, name); err == nil {
		return hootenanny.Content(near), nil
	}
	var there hootenanny.ContentInfo
	if err := f.ask(ctx, "cas_inspect", map[string]any{"hash": name}, &there); err != nil {
		return hootenanny.Content{}, err
	}
	if near, err := f.near.Find(ctx, there.Hash); err == nil {
		return hootenanny.Content(near), nil
	}
	near, err := f.near.Put(ctx, &farReader{ctx: ctx, from: f, hash: there.Hash, left: there.Size}, there.MIMEType)
	if err != nil {
		return hootenanny.Content{}, err
	}
	if near.Hash.String() != there.Hash {
		return hootenanny.Content{}, fault.New(fault.Upstream, "%s sent other content than %s", hootenanny.Space, there.Hash)
	}
	return hootenanny.Content(near), nil
}

// Subscribe reads a content that Content found.
func (f farMusic) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return f.near.Open(ctx, ref)
}

// mostSent is how much content crosses whole in one call.
const mostSent = 24 << 20

// PutContent stores content of a MIME type, here and there.
func (f farMusic) PutContent(ctx context.Context, r io.Reader, mime string) (stored hootenanny.StoredContent, err error) {
	data, err := io.ReadAll(io.LimitReader(r, mostSent+1))
	if err != nil {
		return stored, err
	}
	if len(data) > mostSent {
		return stored, fault.New(fault.Limit, "the content is larger than the %d bytes that %s takes from here", mostSent, hootenanny.Space).
			WithHint("upload it there as a file, with cas_upload_file")
	}
	if err := f.ask(ctx, "cas_store", map[string]any{"content_base64": base64.StdEncoding.EncodeToString(data), "mime_type": mime}, &stored); err != nil {
		return stored, err
	}
	_, err = f.near.Put(ctx, bytes.NewReader(data), mime)
	return stored, err
}

// farReader fetches a content piece by piece.
type farReader struct {
	ctx    context.Context
	from   farMusic
	hash   string
	offset int64
	left   int64
	piece  []byte
}

// pieceSize is how much of a content comes with one call.
const pieceSize = 4 << 20

func (r *farReader) Read(p []byte) (int, error) {
	if len(r.piece) == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}

func (r *farReader) fetch() error {
	var got hootenanny.ContentData
	err := r.from.ask(r.ctx, "cas_get", map[string]any{"hash": r.hash, "offset": r.offset, "length": min(pieceSize, r.left)}, &got)
	if err != nil {
		return err
	}
	r.piece, err = base64.StdEncoding.DecodeString(got.Data)
	if err != nil || len(r.piece) == 0 || int64(len(r.piece)) > r.left {
		return fault.New(fault.Upstream, "%s sent %d of the %d bytes it has of %s", hootenanny.Space, len(r.piece), r.left, r.hash)
	}
	r.offset += int64(len(r.piece))
	r.left -= int64(len(r.piece))
	return nil
}

// musician is the music backend, wherever it is.
type musician interface {
	contents.Store
	Garden(ctx context.Context) (hootenanny.GardenView, error)
}

// musicians asks the music backend that plays now: an upstream of its name may
// come and go.
type musicians struct{ house *Server }

func (m musicians) now() musician {
	if m.house.musicElsewhere() {
		return farMusic{m.house.catalog, m.house.contents}
	}
	return m.house.hoot
}

func (m musicians) Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error) {
	return m.now().Artifact(ctx, id)
}

func (m musicians) Artifacts(ctx context.Context, q hootenanny.Search) (hootenanny.ArtifactList, error) {
	return m.now().Artifacts(ctx, q)
}

func (m musicians) Garden(ctx context.Context) (hootenanny.GardenView, error) {
	return m.now().Garden(ctx)
}

func (m musicians) Content(ctx context.Context, name string) (hootenanny.Content, error) {
	return m.now().Content(ctx, name)
}

func (m musicians) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return m.now().Open(ctx, ref)
}

func (m musicians) PutContent(ctx context.Context, r io.Reader, mime string) (hootenanny.StoredContent, error) {
	return m.now().PutContent(ctx, r, mime)
}

// musicContents is the store of contents as scripts see it: our own, and that of
// the music backend where it is another process, so that a hash means the same to
// a script and to the tools it calls.
type musicContents struct {
	contentStore
	house *Server
}

func (m musicContents) Put(ctx context.Context, r io.Reader, mime string) (host.Content, error) {
	if !m.house.musicElsewhere() {
		return m.contentStore.Put(ctx, r, mime)
	}
	stored, err := m.far().PutContent(ctx, r, mime)
	if err != nil {
		return host.Content{}, err
	}
	return m.contentStore.Find(ctx, stored.Hash)
}

func (m musicContents) Find(ctx context.Context, hash string) (host.Content, error) {
	found, err := m.contentStore.Find(ctx, hash)
	if err == nil || !m.house.musicElsewhere() {
		return found, err
	}
	far, err := m.far().Content(ctx, hash)
	return host.Content(far), err
}

func (m musicContents) Artifact(ctx context.Context, id string) (host.Content, error) {
	if m.house.musicElsewhere() {
		if far, err := m.far().Artifact(ctx, id); err == nil {
			return m.Find(ctx, far.Hash)
		}
	}
	return m.contentStore.Artifact(ctx, id)
}

func (m musicContents) far() farMusic { return farMusic{m.house.catalog, m.contentStore} }

// nearMusic is the music tools in this process, which give way to an upstream of
// their name.
type nearMusic struct {
	tool.Source
	elsewhere func() bool
}

func (n *nearMusic) Tools(ctx context.Context) ([]tool.Info, error) {
	if n.elsewhere() {
		return nil, nil
	}
	return n.Source.Tools(ctx)
}
