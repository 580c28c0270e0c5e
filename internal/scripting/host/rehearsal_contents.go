package host

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/cas"
)

// overlayContents is a store of contents for rehearsals: it holds what would be stored in
// memory, over the real store.
type overlayContents struct {
	Contents
	limit int64

	mu   sync.Mutex
	held map[cas.Ref]overlayContent
}

type overlayContent struct {
	Content
	data []byte
}

func newOverlayContents(c Contents, limit int64) Contents {
	return &overlayContents{Contents: c, limit: limit, held: map[cas.Ref]overlayContent{}}
}

// Put computes the hash and holds the content in memory.
func (c *overlayContents) Put(_ context.Context, r io.Reader, mime string) (Content, error) {
	data, err := io.ReadAll(io.LimitReader(r, c.limit+1))
	if err != nil {
		return Content{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit -= int64(len(data)); c.limit < 0 {
		return Content{}, fault.New(fault.Limit, "the rehearsal stores more than it may hold in memory")
	}
	one := overlayContent{Content{Hash: cas.Sum(data), Size: int64(len(data)), MIME: mime}, data}
	c.held[one.Hash] = one
	return one.Content, nil
}

// Find looks in memory first.
func (c *overlayContents) Find(ctx context.Context, hash string) (Content, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	short := strings.TrimPrefix(strings.TrimPrefix(hash, cas.Scheme), "//")
	for ref, one := range c.held {
		if len(short) >= 12 && strings.HasPrefix(ref.String(), short) {
			return one.Content, nil
		}
	}
	return c.Contents.Find(ctx, hash)
}

// Open looks in memory first.
func (c *overlayContents) Open(ctx context.Context, hash cas.Ref) (io.ReadCloser, error) {
	c.mu.Lock()
	one, held := c.held[hash]
	c.mu.Unlock()
	if held {
		return io.NopCloser(bytes.NewReader(one.data)), nil
	}
	return c.Contents.Open(ctx, hash)
}
