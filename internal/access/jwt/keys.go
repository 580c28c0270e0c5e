package jwt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/luanette/luanette/internal/base/fault"
)

// fetchTime limits how long an issuer may take to send its metadata.
const fetchTime = 10 * time.Second

// keyRequest is a request for the keys of one issuer. All callers that need them share
// it, and a slow issuer delays only callers with its tokens.
type keyRequest struct {
	answered chan struct{} // closed when check or err is set
	check    *oidc.IDTokenVerifier
	err      error
}

// verifier returns the verifier of an issuer's tokens. It caches the keys and fetches
// them again when a token names an unknown one.
func (s *Server) verifier(ctx context.Context, i Issuer) (*oidc.IDTokenVerifier, error) {
	s.mu.Lock()
	known, asked := s.known[i.URL], s.asked[i.URL]
	if known == nil && asked == nil {
		asked = &keyRequest{answered: make(chan struct{})}
		s.asked[i.URL] = asked
		go s.fetchVerifier(context.WithoutCancel(ctx), i, asked)
	}
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	select {
	case <-asked.answered:
		return asked.check, asked.err
	case <-ctx.Done():
		return nil, i.unreachable(context.Cause(ctx))
	}
}

// fetchVerifier runs a keyRequest. If it fails, the next caller that needs the keys
// starts another one.
func (s *Server) fetchVerifier(ctx context.Context, i Issuer, q *keyRequest) {
	q.check, q.err = s.newVerifier(oidc.ClientContext(ctx, s.client), i)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, i.URL)
	if q.err == nil {
		s.known[i.URL] = q.check
	}
	close(q.answered)
}

func (s *Server) newVerifier(ctx context.Context, i Issuer) (*oidc.IDTokenVerifier, error) {
	config := &oidc.Config{ClientID: i.Audience, SupportedSigningAlgs: algorithms, Now: now}
	at := i.Keys
	if at == "" {
		soon, cancel := context.WithTimeout(ctx, fetchTime)
		defer cancel()
		provider, err := oidc.NewProvider(soon, i.URL)
		if err != nil {
			return nil, i.unreachable(err).WithHint("if its metadata is not at the standard path, set the address of its keys: jwks in luanette.toml")
		}
		var metadata struct {
			Keys string `json:"jwks_uri"`
		}
		if err := provider.Claims(&metadata); err != nil {
			return nil, i.unreachable(err)
		}
		at = metadata.Keys
	}
	return oidc.NewVerifier(i.URL, keySet{i, oidc.NewRemoteKeySet(ctx, at)}, config), nil
}

func (i Issuer) unreachable(err error) *fault.Error {
	return fault.Wrap(fault.Unavailable, err, "fetch the keys of %s", i.URL)
}

// keySet distinguishes a wrong signature from keys that cannot be fetched. In the
// second case the client must not be sent to log in again.
type keySet struct {
	issuer Issuer
	remote *oidc.RemoteKeySet
}

// fetchErrorKey is the context key of a *error that receives why the keys could not be
// fetched.
type fetchErrorKey struct{}

func (k keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	if cause := errors.Unwrap(err); cause != nil { // only fetch errors are wrapped
		if why, ok := ctx.Value(fetchErrorKey{}).(*error); ok {
			*why = k.issuer.unreachable(cause)
		}
	}
	return payload, err
}

// cachingTransport fetches the same address at most once per cacheTime while it
// succeeds. Otherwise a client that sends tokens with unknown keys could make the
// server request the keys each time.
type cachingTransport struct {
	inner http.RoundTripper

	mu   sync.Mutex
	last map[string]cachedResponse
}

type cachedResponse struct {
	at     time.Time
	header http.Header
	body   []byte
}

const (
	cacheTime   = 5 * time.Second
	maxResponse = 1 << 20
)

// RoundTrip returns only responses of status 200 and limited size.
func (c *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	where := r.URL.String()
	c.mu.Lock()
	last, ok := c.last[where]
	c.mu.Unlock()
	if !ok || time.Since(last.at) > cacheTime {
		var err error
		if last, err = c.fetch(r); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.last[where] = last
		c.mu.Unlock()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: last.header, Body: io.NopCloser(bytes.NewReader(last.body)), ContentLength: int64(len(last.body)), Request: r,
	}, nil
}

func (c *cachingTransport) fetch(r *http.Request) (cachedResponse, error) {
	response, err := c.inner.RoundTrip(r)
	if err != nil {
		return cachedResponse{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return cachedResponse{}, errors.New("the response is " + response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err == nil && len(body) > maxResponse {
		err = errors.New("the response is too long")
	}
	return cachedResponse{time.Now(), response.Header, body}, err
}
