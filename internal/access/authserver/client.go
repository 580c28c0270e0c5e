package authserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// client is a program that acts for people.
type client struct {
	ID        string   `json:"client_id"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
}

// CommandLine is the client of `luanette login`. It has no redirects: it uses device codes.
const CommandLine = "luanette-cli"

// host is the host that vouches for the client's name; empty if nobody does.
func (c client) host() string {
	if !isDocument(c.ID) {
		return ""
	}
	u, _ := url.Parse(c.ID) // isDocument has parsed it
	return u.Host
}

func errClient(why string) *fault.Error {
	return fault.New(fault.InvalidParams, "the client is not known: %s", why).WithHint("add the server in the client again, so that it registers again")
}

// client returns the client with an id.
func (s *Server) client(ctx context.Context, id string) (client, error) {
	switch {
	case id == CommandLine:
		return client{ID: id, Name: "luanette on the command line"}, nil
	case isDocument(id):
		return s.document(ctx, id)
	}
	c := client{ID: id}
	var redirects string
	err := s.db.QueryRow(ctx, "SELECT name, redirects FROM as_clients WHERE id = $1", id).Scan(&c.Name, &redirects)
	if errors.Is(err, sql.ErrNoRows) {
		return c, errClient("it has not registered")
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal([]byte(redirects), &c.Redirects)
}

// isDocument reports whether an id is the address of a client metadata document: https,
// with a path, and nothing that lets two texts name one document.
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == "" && strings.Trim(u.Path, "/") != "" &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." }) && u.String() == id
}

// Limits of documents and of their fetching.
const (
	maxDocument     = 64 << 10
	documentTimeout = 5 * time.Second
	shortestCache   = time.Minute
	longestCache    = 24 * time.Hour
	maxDocuments    = 1000
)

// documentCache has the documents that were fetched.
type documentCache struct {
	mu    sync.Mutex
	known map[string]cachedDocument
}

type cachedDocument struct {
	client
	until time.Time
}

// document returns the client that a metadata document describes.
func (s *Server) document(ctx context.Context, id string) (client, error) {
	now := s.options.Now()
	s.documents.mu.Lock()
	cached, ok := s.documents.known[id]
	s.documents.mu.Unlock()
	if ok && now.Before(cached.until) {
		return cached.client, nil
	}
	c, age, err := s.fetch(ctx, id)
	if err != nil {
		return client{}, err
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	if s.documents.known == nil || len(s.documents.known) >= maxDocuments {
		s.documents.known = map[string]cachedDocument{}
	}
	s.documents.known[id] = cachedDocument{c, now.Add(min(max(age, shortestCache), longestCache))}
	return c, nil
}

// fetch fetches a document. It follows no redirects: the address identifies the client.
func (s *Server) fetch(ctx context.Context, id string) (c client, age time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return c, 0, err
	}
	request.Header.Set("Accept", "application/json")
	client := *s.options.Documents
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		s.options.Log.InfoContext(ctx, "client metadata not fetched", "client", id, "error", err)
		return c, 0, errClient("its metadata document cannot be fetched")
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case err != nil || len(body) > maxDocument:
		return c, 0, errClient("its metadata document is too long or too slow")
	case response.StatusCode != http.StatusOK || kind != "application/json" && !strings.HasSuffix(kind, "+json"):
		return c, 0, errClient("its address has no metadata document")
	case json.Unmarshal(body, &c) != nil || c.ID != id || len(c.Redirects) == 0:
		return c, 0, errClient("its metadata document does not describe it")
	}
	if err := c.check(); err != nil {
		return c, 0, err
	}
	return c, maxAge(response.Header), nil
}

// check refuses clients whose redirects could give codes to others.
func (c *client) check() error {
	c.Name = shown(c.Name)
	if len(c.Redirects) > 50 {
		return fault.New(fault.InvalidParams, "the client has more than 50 redirect URIs")
	}
	for _, redirect := range c.Redirects {
		if !isRedirect(redirect) {
			return fault.New(fault.InvalidParams, "the redirect URI %q is not https, on this machine, or of a program", shown(redirect))
		}
	}
	return nil
}

// shown is a text of others, for people.
func shown(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1 // it would change how the rest is shown
		}
		return r
	}, text)
	if runes := []rune(clean); len(runes) > 100 {
		return string(runes[:100]) + "…"
	}
	return clean
}

// maxAge is how long a response may be cached.
func maxAge(header http.Header) time.Duration {
	for part := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		seconds, err := strconv.Atoi(strings.Trim(value, `"`))
		if name == "max-age" && err == nil && seconds >= 0 {
			return time.Duration(min(seconds, int(longestCache.Seconds()))) * time.Second
		}
	}
	return 0
}

// Limits of registrations.
const (
	maxClients       = 10_000
	unusedClientTime = 24 * time.Hour       // after which a client that never got tokens is deleted
	idleClientTime   = 180 * 24 * time.Hour // and one that did
)

// register registers a client (RFC 7591). All clients are public: a secret that anybody can
// get proves nothing.
func (s *Server) register(w http.ResponseWriter, r *http.Request) error {
	if !s.options.Registration {
		return refusal{http.StatusForbidden, "access_denied", "clients cannot register here; use a client metadata document"}
	}
	if tooMany, err := s.attempts.add(r.Context(), registrations, s.source(r), s.options.Now()); err != nil {
		return err
	} else if tooMany {
		return refusal{http.StatusTooManyRequests, "slow_down", "too many registrations"}
	}
	var c client
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDocument))
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return refusal{http.StatusBadRequest, "invalid_client_metadata", "the body is not the JSON of a client"}
	}
	if len(c.Redirects) == 0 || c.check() != nil {
		return refusal{http.StatusBadRequest, "invalid_redirect_uri", "redirect URIs are https, on this machine, or of a program"}
	}
	now := s.options.Now()
	c.ID = "c" + strings.ToLower(rand.Text())
	if err := s.saveClient(r.Context(), c, now); err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, map[string]any{
		"client_id": c.ID, "client_id_issued_at": now.Unix(), "client_name": c.Name, "redirect_uris": c.Redirects,
		"grant_types": []string{grantCode, grantRefresh}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	})
	return nil
}

func (s *Server) saveClient(ctx context.Context, c client, now time.Time) error {
	redirects, err := json.Marshal(c.Redirects)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM as_clients WHERE used = 0 AND created < $1 OR used > 0 AND used < $2",
			now.Add(-unusedClientTime).UnixMicro(), now.Add(-idleClientTime).UnixMicro()); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM as_clients").Scan(&n); err != nil {
			return err
		}
		if n >= maxClients {
			return refusal{http.StatusServiceUnavailable, "temporarily_unavailable", "too many clients have registered"}
		}
		_, err := tx.Exec(ctx, "INSERT INTO as_clients (id, name, redirects, created, used) VALUES ($1, $2, $3, $4, 0)", c.ID, c.Name, string(redirects), now.UnixMicro())
		return err
	})
}
