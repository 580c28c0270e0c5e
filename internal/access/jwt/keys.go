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

// fetchTime bounds how long an issuer may take to tell its keys.
const fetchTime = 10 * time.Second

// question is put to an issuer once for all who need the answer, so that one that
// is slow to answer holds up nobody else's tokens.
type question struct {
	answered chan struct{} // closed when check or err is there
	check    *oidc.IDTokenVerifier
	err      error
}

// check is what checks an issuer's tokens. Keys are kept, and asked for again when
// a token was made with one that is not known.
func (s *Server) check(ctx context.Context, i Issuer) (*oidc.IDTokenVerifier, error) {
	s.mu.Lock()
	known, asked := s.known[i.URL], s.asked[i.URL]
	if known == nil && asked == nil {
		asked = &question{answered: make(chan struct{})}
		s.asked[i.URL] = asked
		go s.ask(context.WithoutCancel(ctx), i, asked)
	}
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	select {
	case <-asked.answered:
		return asked.check, asked.err
	case <-ctx.Done():
		return nil, i.away(context.Cause(ctx))
	}
}

// ask finds out how an issuer's tokens are checked. It is asked again by the next
// who needs to know when it did not answer.
func (s *Server) ask(ctx context.Context, i Issuer, q *question) {
	q.check, q.err = s.find(oidc.ClientContext(ctx, s.client), i)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, i.URL)
	if q.err == nil {
		s.known[i.URL] = q.check
	}
	close(q.answered)
}

func (s *Server) find(ctx context.Context, i Issuer) (*oidc.IDTokenVerifier, error) {
	config := &oidc.Config{ClientID: i.Audience, SupportedSigningAlgs: algorithms, Now: now}
	at := i.Keys
	if at == "" {
		soon, cancel := context.WithTimeout(ctx, fetchTime)
		defer cancel()
		provider, err := oidc.NewProvider(soon, i.URL)
		if err != nil {
			return nil, i.away(err).WithHint("where its metadata is not in the usual place, say where its keys are: jwks in luanette.toml")
		}
		var metadata struct {
			Keys string `json:"jwks_uri"`
		}
		if err := provider.Claims(&metadata); err != nil {
			return nil, i.away(err)
		}
		at = metadata.Keys
	}
	return oidc.NewVerifier(i.URL, keySet{i, oidc.NewRemoteKeySet(ctx, at)}, config), nil
}

func (i Issuer) away(err error) *fault.Error {
	return fault.Wrap(fault.Unavailable, err, "ask %s for its keys", i.URL)
}

// keySet tells a signature that is wrong from keys that cannot be had: then nobody
// should be sent to log in again.
type keySet struct {
	issuer Issuer
	remote *oidc.RemoteKeySet
}

// missing is where, in a context, is noted why keys could not be had.
type missing struct{}

func (k keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	if cause := errors.Unwrap(err); cause != nil { // of fetching, and of nothing else
		if why, ok := ctx.Value(missing{}).(*error); ok {
			*why = k.issuer.away(cause)
		}
	}
	return payload, err
}

// calm asks for the same address at most once in a while when it was answered: who
// sends tokens that name unknown keys would else have issuers asked as often.
type calm struct {
	inner http.RoundTripper

	mu   sync.Mutex
	last map[string]answer
}

type answer struct {
	at     time.Time
	header http.Header
	body   []byte
}

const (
	calmFor    = 5 * time.Second
	answerMost = 1 << 20
)

// RoundTrip gives answers of status 200 only, and short ones.
func (c *calm) RoundTrip(r *http.Request) (*http.Response, error) {
	where := r.URL.String()
	c.mu.Lock()
	last, ok := c.last[where]
	c.mu.Unlock()
	if !ok || time.Since(last.at) > calmFor {
		var err error
		if last, err = c.ask(r); err != nil {
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

func (c *calm) ask(r *http.Request) (answer, error) {
	response, err := c.inner.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return answer{}, errors.New("it answered " + response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, answerMost+1))
	if err == nil && len(body) > answerMost {
		err = errors.New("its answer is too long")
	}
	return answer{time.Now(), response.Header, body}, err
}
