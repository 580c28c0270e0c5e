package server

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
	"github.com/luanette/luanette/internal/base/secret"
)

// Admin asks this house's own door.
func (d *localDesk) Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	request, err := adminRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	w := &answered{header: http.Header{}, status: http.StatusOK}
	d.admin().ServeHTTP(w, request)
	return adminAnswer(w.status, w.body.Bytes())
}

// Admin asks the server.
func (d *remoteDesk) Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	return Ask(ctx, d.address, d.key, method, path, body)
}

// Ask asks something of a running server's own API.
func Ask(ctx context.Context, address string, key secret.Text, method, path string, body any) (json.RawMessage, error) {
	base := address
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || !strings.HasPrefix(u.Scheme, "http") {
		return nil, fault.New(fault.InvalidParams, "%s is not the address of an HTTP server", address).WithHint("give one such as http://127.0.0.1:8081")
	}
	request, err := adminRequest(ctx, method, u.Scheme+"://"+u.Host+path, body)
	if err != nil {
		return nil, err
	}
	if !key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if about := (*url.Error)(nil); errors.As(err, &about) {
			err = about.Err // the address is said already
		}
		return nil, fault.Wrap(fault.Unavailable, err, "ask %s", address).
			WithHint("start it with `luanette serve`, or name the one that runs: --server URL")
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 256<<20))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "ask %s", address)
	}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && key.IsZero() {
		return nil, fault.New(fault.NeedsAuth, "ask %s: the server wants a key", address).
			WithHint("give one with --key, or in LUANETTE_KEY; `luanette key create` makes one")
	}
	return adminAnswer(response.StatusCode, raw)
}

func adminRequest(ctx context.Context, method, target string, body any) (*http.Request, error) {
	var reader io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// adminAnswer is what the door said, or the fault it answered with.
func adminAnswer(status int, body []byte) (json.RawMessage, error) {
	if status == http.StatusOK {
		return body, nil
	}
	var said struct{ Code, Message, Hint string }
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		return nil, fault.New(fault.Upstream, "the server answered %d", status).WithHint("is it a luanette of this version?")
	}
	return nil, fault.New(fault.Code(said.Code), "%s", said.Message).WithHint("%s", said.Hint)
}

// answered is an answer that stays in the house.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answered) Header() http.Header                { return a.header }
func (a *answered) WriteHeader(status int)             { a.status = status }
func (a *answered) Write(data []byte) (n int, _ error) { return a.body.Write(data) }
