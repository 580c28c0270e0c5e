package hootenanny

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// Remote is a music backend in another process, used through its tools. A content is
// copied into our own store on first use. The store names contents by their hash, so
// the other process cannot pass off one content as another.
type Remote struct {
	Tools tool.Source
	Files *artifact.Files
}

// ask calls a music tool and reads its answer into out.
func (f Remote) ask(ctx context.Context, name string, args, out any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "%s", name)
	}
	result, err := f.Tools.Call(ctx, tool.Call{Ref: tool.Ref{Space: Space, Name: name}, Args: raw})
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
		return fault.Wrap(fault.Upstream, err, "read the result of %s.%s", Space, name)
	}
	return nil
}

// failureOf returns a tool's error, with its code if it has one.
func failureOf(view tool.View) error {
	var meta struct {
		Error *fault.Error `json:"luanette/error"`
	}
	if json.Unmarshal(view.Meta, &meta) == nil && meta.Error != nil && meta.Error.Code != "" {
		return meta.Error
	}
	return fault.New(fault.Upstream, "%s", view.Text())
}

// Artifact returns the artifact that an id or a hash names.
func (f Remote) Artifact(ctx context.Context, id string) (view ArtifactView, err error) {
	return view, f.ask(ctx, "artifact_get", map[string]any{"id": id}, &view)
}

// Artifacts returns the artifacts that match a search.
func (f Remote) Artifacts(ctx context.Context, q artifact.Query) (list ArtifactList, err error) {
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

// Garden is the transport and the whole timeline of a project.
func (f Remote) Garden(ctx context.Context, project string) (view GardenView, err error) {
	args := map[string]any{}
	if project != "" { // other implementations may have no projects
		args["project"] = project
	}
	return view, f.ask(ctx, "garden_query", args, &view)
}

// Content returns what a hash, a unique prefix of one, or an artifact's id names, after
// copying it into our own store.
func (f Remote) Content(ctx context.Context, name string) (Content, error) {
	if near, err := f.Files.FindFile(ctx, name); err == nil {
		return near, nil
	}
	var there ContentInfo
	if err := f.ask(ctx, "cas_inspect", map[string]any{"hash": name}, &there); err != nil {
		return Content{}, err
	}
	if near, err := f.Files.FindFile(ctx, there.Hash); err == nil {
		return near, nil
	}
	near, err := f.Files.PutFile(ctx, &remoteReader{ctx: ctx, from: f, hash: there.Hash, left: there.Size}, there.MIMEType)
	if err != nil {
		return Content{}, err
	}
	if near.Hash.String() != there.Hash {
		return Content{}, fault.New(fault.Upstream, "%s sent other content than %s", Space, there.Hash)
	}
	return near, nil
}

// Open opens a content that Content returned.
func (f Remote) Open(ctx context.Context, ref cas.Ref) (io.ReadCloser, error) {
	return f.Files.Open(ctx, ref)
}

// maxSent is how much content one call may send.
const maxSent = 24 << 20

// PutContent stores content in both processes.
func (f Remote) PutContent(ctx context.Context, r io.Reader, mime string) (stored StoredContent, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSent+1))
	if err != nil {
		return stored, err
	}
	if len(data) > maxSent {
		return stored, fault.New(fault.Limit, "the content is larger than the %d bytes that one call to %s can send", maxSent, Space).
			WithHint("upload it as a file with cas_upload_file")
	}
	if err := f.ask(ctx, "cas_store", map[string]any{"content_base64": base64.StdEncoding.EncodeToString(data), "mime_type": mime}, &stored); err != nil {
		return stored, err
	}
	_, err = f.Files.PutFile(ctx, bytes.NewReader(data), mime)
	return stored, err
}

// remoteReader fetches a content in pieces.
type remoteReader struct {
	ctx    context.Context // for a single copy
	from   Remote
	hash   string
	offset int64
	left   int64
	piece  []byte
}

// pieceSize is how much of a content one call fetches.
const pieceSize = 4 << 20

func (r *remoteReader) Read(p []byte) (int, error) {
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

func (r *remoteReader) fetch() error {
	var got ContentData
	err := r.from.ask(r.ctx, "cas_get", map[string]any{"hash": r.hash, "offset": r.offset, "length": min(pieceSize, r.left)}, &got)
	if err != nil {
		return err
	}
	r.piece, err = base64.StdEncoding.DecodeString(got.Content)
	if err != nil || len(r.piece) == 0 || int64(len(r.piece)) > r.left {
		return fault.New(fault.Upstream, "%s sent %d of the %d bytes it has of %s", Space, len(r.piece), r.left, r.hash)
	}
	r.offset += int64(len(r.piece))
	r.left -= int64(len(r.piece))
	return nil
}
