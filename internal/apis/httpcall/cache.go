package httpcall

import (
	"bytes"
	"container/list"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Limits of the cache.
const (
	maxCachedBody = 256 << 10
	maxCache      = 8 << 20
)

// cache has recent answers with an ETag, which the service need not send again if they are
// still current. It always asks.
type cache struct {
	mu     sync.Mutex
	byKey  map[string]*list.Element
	recent list.List // of *cachedAnswer, most recent first
	size   int
}

type cachedAnswer struct {
	key    string
	etag   string
	header http.Header
	body   []byte
}

func newCache() *cache { return &cache{byKey: map[string]*list.Element{}} }

// cached sends a request, as a conditional one if the answer is known.
func (c *Client) cached(ctx context.Context, r Request, token string) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header.Get("Range") != "" || r.Header.Get("If-None-Match") != "" {
		return c.send(ctx, r, token)
	}
	key := cacheKey(r)
	known := c.cache.get(key)
	if known != nil {
		r.Header = maps.Clone(r.Header)
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("If-None-Match", known.etag)
	}
	answer, err := c.send(ctx, r, token)
	switch {
	case err != nil:
		return nil, err
	case known != nil && answer.StatusCode == http.StatusNotModified:
		answer.Body.Close()
		return known.answer(answer), nil
	case answer.StatusCode == http.StatusOK:
		c.cache.keep(key, answer)
	}
	return answer, nil
}

// cacheKey is what an answer depends on.
func cacheKey(r Request) string {
	var key strings.Builder
	key.WriteString(r.URL.String())
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		key.WriteString("\n" + name + ": " + strings.Join(r.Header[name], ","))
	}
	return key.String()
}

// answer is the cached answer with the headers of the newest one.
func (k *cachedAnswer) answer(fresh *http.Response) *http.Response {
	header := maps.Clone(k.header)
	for name, values := range fresh.Header {
		if name != "Content-Length" && name != "Content-Type" {
			header[name] = values
		}
	}
	copied := *fresh
	copied.StatusCode, copied.Status, copied.Header = http.StatusOK, "200 OK", header
	copied.ContentLength, copied.Body = int64(len(k.body)), io.NopCloser(bytes.NewReader(k.body))
	return &copied
}

func (c *cache) get(key string) *cachedAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.byKey[key]
	if found == nil {
		return nil
	}
	c.recent.MoveToFront(found)
	return found.Value.(*cachedAnswer)
}

// keep stores a small answer with an ETag. It reads its body, which can be read again.
func (c *cache) keep(key string, answer *http.Response) {
	etag := answer.Header.Get("ETag")
	if etag == "" || answer.ContentLength > maxCachedBody || strings.Contains(answer.Header.Get("Cache-Control"), "no-store") {
		return
	}
	start, err := io.ReadAll(io.LimitReader(answer.Body, maxCachedBody+1))
	if err != nil || len(start) > maxCachedBody { // whoever reads it gets the same error
		answer.Body = &restoredBody{io.MultiReader(bytes.NewReader(start), answer.Body), answer.Body}
		return
	}
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(start))
	c.put(&cachedAnswer{key, etag, answer.Header.Clone(), start})
}

// restoredBody is a body whose beginning was read.
type restoredBody struct {
	io.Reader
	io.Closer
}

func (c *cache) put(k *cachedAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.byKey[k.key]; old != nil {
		c.remove(old)
	}
	c.byKey[k.key] = c.recent.PushFront(k)
	for c.size += len(k.body); c.size > maxCache; {
		c.remove(c.recent.Back())
	}
}

// remove forgets an answer; c.mu is held.
func (c *cache) remove(e *list.Element) {
	k := c.recent.Remove(e).(*cachedAnswer)
	delete(c.byKey, k.key)
	c.size -= len(k.body)
}
