package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/sse"
)

// revision is the one in which a call needs no session, so that a server may go
// disconnect and come back between two of them.
const revision = "2026-07-28"

// server is a running luanette, asked through its public API as anybody else
// would: tools at /mcp, what happens at /api/v1/events.
type server struct {
	base    *url.URL
	key     secret.Text
	version string // ours
	client  *http.Client
}

func newServer(address string, key secret.Text, version string) (*server, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fault.New(fault.InvalidParams, "%q is not the address of a server", address).WithHint("for example http://127.0.0.1:8081")
	}
	base.Path, base.RawQuery, base.Fragment = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/mcp"), "", ""
	return &server{base: base, key: key, version: version, client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}, nil
}

// address is where the server is, without what may be secret.
func (s *server) address() plain { return clean(s.base.Redacted()) }

// do sends a request; an answer that is not a success is an error.
func (s *server) do(r *http.Request) (*http.Response, error) {
	if !s.key.IsZero() {
		r.Header.Set("Authorization", "Bearer "+s.key.Reveal())
	}
	answer, err := s.client.Do(r)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err // the address is shown already
		}
		return nil, fault.Wrap(fault.Unavailable, err, "reach %s", s.base.Redacted()).
			WithHint("start it with `luanette serve`, or name the one that runs: --server URL")
	}
	if answer.StatusCode >= http.StatusBadRequest {
		defer func() { _ = answer.Body.Close() }()
		return nil, statusError(answer)
	}
	return answer, nil
}

// statusError is why the server did not answer.
func statusError(answer *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // what can be read of it
	var body struct {
		Message string
		Error   json.RawMessage
	}
	text := "the server answered " + answer.Status
	if json.Unmarshal(raw, &body) == nil && body.Message != "" {
		text = body.Message
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return fault.New(fault.NeedsAuth, "the server wants a key").WithHint("give one with --key, or in LUANETTE_KEY")
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "%s", text)
	case http.StatusForbidden:
		return fault.New(fault.Denied, "%s", text).WithHint("give another key with --key, or in LUANETTE_KEY")
	}
	return fault.New(fault.Unavailable, "%s", text)
}

// call runs one of the server's tools and reads what it says into into.
func (s *server) call(ctx context.Context, name string, args, into any) error {
	if args == nil {
		args = struct{}{}
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": name, "arguments": args, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    revision,
			"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "luanette-hud", "version": s.version},
			"io.modelcontextprotocol/clientCapabilities": struct{}{},
			"luanette/full": true,
		}},
	})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "write a call of %s", name)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base.JoinPath("mcp").String(), bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "write a call of %s", name)
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	answer, err := s.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := responseMessage(answer)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "read the answer of %s", name)
	}
	return decodeResult(name, raw, into)
}

// responseMessage is the answer to the one request that was sent.
func responseMessage(answer *http.Response) ([]byte, error) {
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return io.ReadAll(io.LimitReader(answer.Body, sse.MaxEvent))
	}
	for events := sse.NewReader(answer.Body, 0); ; {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		if _, answers := rawjson.Get(e.Data, "id"); answers { // others are about progress
			return e.Data, nil
		}
	}
}

// decodeResult reads the data of a result. A tool that failed is an error.
func decodeResult(name string, raw []byte, into any) error {
	var answer struct {
		Error  *struct{ Message string }
		Result struct {
			IsError           bool
			StructuredContent json.RawMessage
			Content           []struct{ Text string }
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the answer of %s", name)
	}
	switch result := answer.Result; {
	case answer.Error != nil:
		return fault.New(fault.Upstream, "%s", answer.Error.Message)
	case result.IsError && len(result.Content) > 0:
		return fault.New(fault.Upstream, "%s", result.Content[0].Text)
	case result.IsError:
		return fault.New(fault.Upstream, "%s failed", name)
	case into == nil:
		return nil
	default:
		if err := json.Unmarshal(result.StructuredContent, into); err != nil {
			return fault.Wrap(fault.Upstream, err, "read the answer of %s", name)
		}
		return nil
	}
}

// events opens the stream of what happens after the event of that number, or of
// all that is kept.
func (s *server) events(ctx context.Context, after string, follow bool) (io.ReadCloser, error) {
	at := s.base.JoinPath("api/v1/events")
	at.RawQuery = "after=" + url.QueryEscape(after)
	if !follow {
		at.RawQuery += "&follow=false"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "ask for events")
	}
	r.Header.Set("Accept", "text/event-stream")
	answer, err := s.do(r)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
