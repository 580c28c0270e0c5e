package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// httpAPI sends requests to the HTTP API of a running server.
type httpAPI struct {
	base string // without a slash at the end
	key  secret.Text
	http *http.Client
}

// Access is what connections to a running server need.
type Access struct {
	Key    secret.Text // API key; zero if the server requires none
	CAFile string      // PEM file with the authority of its certificate; empty: one of the system
}

// connectHTTP returns the API of the server at address, such as http://127.0.0.1:8081. An
// address of its MCP endpoint is accepted too.
func connectHTTP(address string, access Access) (httpAPI, error) {
	u, err := url.Parse(withScheme(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return httpAPI{}, fault.New(fault.InvalidParams, "%s is not the address of an HTTP server", address).WithHint("for example http://127.0.0.1:8081")
	}
	path, _, _ := strings.Cut(u.Path, "/mcp")
	api := httpAPI{u.Scheme + "://" + u.Host + strings.TrimRight(path, "/"), access.Key, http.DefaultClient}
	if access.CAFile != "" {
		api.http, err = certpool.Client(access.CAFile)
	}
	return api, err
}

// withScheme adds http:// to an address without a scheme.
func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// open sends a request and returns the response if it is not an error. The caller closes
// its body.
func (a httpAPI) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	request, err := newRequest(ctx, method, a.base+path, body)
	if err != nil {
		return nil, err
	}
	if !a.key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+a.key.Reveal())
	}
	response, err := a.http.Do(request)
	if err != nil {
		if withURL := (*url.Error)(nil); errors.As(err, &withURL) {
			err = withURL.Err // the message names the address already
		}
		return nil, fault.Wrap(fault.Unavailable, err, "connect to %s", a.base).WithHint("%s", cmp.Or(certpool.Hint(err), startHint))
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the response of %s", a.base)
	}
	return nil, responseError(response.StatusCode, raw)
}

// maxResponse is the maximum size of a response, in bytes.
const maxResponse = 256 << 20

// send sends a request and returns the body of the response.
func (a httpAPI) send(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	response, err := a.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the response of %s", a.base)
	}
	return raw, nil
}

// sendInto sends a request and decodes the response.
func (a httpAPI) sendInto(ctx context.Context, method, path string, body, into any) error {
	raw, err := a.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the response of %s", a.base)
	}
	return nil
}

// newRequest returns a request with a JSON body, which may be nil.
func newRequest(ctx context.Context, method, target string, body any) (*http.Request, error) {
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

// responseError returns the error in a response. Some APIs have codes of their own, in
// capitals; for those the status determines the code.
func responseError(status int, body []byte) error {
	type problem struct{ Code, Message, Hint string }
	var p problem
	var nested struct{ Error problem }
	if json.Unmarshal(body, &nested) == nil && nested.Error.Message != "" {
		p = nested.Error
	} else if json.Unmarshal(body, &p) != nil || p.Message == "" {
		return fault.New(codeOf(status), "the server responded with status %d", status).WithHint("check that it is a luanette of this version")
	}
	if status == http.StatusUnauthorized {
		return fault.New(fault.NeedsAuth, "the server requires a key: %s", p.Message).WithHint(keyHint)
	}
	code := fault.Code(p.Code)
	if p.Code == "" || p.Code != strings.ToLower(p.Code) {
		code = codeOf(status)
	}
	if code == fault.NeedsAuth && p.Hint == "" {
		p.Hint = keyHint
	}
	return fault.New(code, "%s", p.Message).WithHint("%s", p.Hint)
}

func codeOf(status int) fault.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.NeedsAuth
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway:
		return fault.Unavailable
	default:
		return fault.Upstream
	}
}

// Request sends a request to the API of the server at address.
func Request(ctx context.Context, address string, access Access, method, path string, body any) (json.RawMessage, error) {
	api, err := connectHTTP(address, access)
	if err != nil {
		return nil, err
	}
	return api.send(ctx, method, path, body)
}
