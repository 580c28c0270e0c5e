// Package serverapi sends requests to the HTTP API of a running server.
package serverapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// Hints for a server that cannot be used.
const (
	KeyHint   = "sign in with `luanette login URL`, or give a key with --key or LUANETTE_KEY; `luanette key create` creates one"
	StartHint = "start a server with `luanette serve`, or name a running one with --server URL"
)

// API is the HTTP API of a running server.
type API struct {
	Base string // address without a slash at the end
	Key  secret.Text
	HTTP *http.Client
}

// Access is what connections to a running server need.
type Access struct {
	Key    secret.Text // API key; zero if the server requires none
	CAFile string      // PEM file with the authority of its certificate; empty: one of the system
}

// Connect returns the API of the server at address, such as http://127.0.0.1:8081. An
// address of its MCP endpoint is accepted too.
func Connect(address string, access Access) (API, error) {
	if base, socket := OverSocket(address); socket != "" {
		return API{base, access.Key, &http.Client{Transport: &http.Transport{DialContext: DialSocket(socket)}}}, nil
	}
	u, err := url.Parse(WithScheme(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return API{}, fault.New(fault.InvalidParams, "%s is not the address of an HTTP server", address).WithHint("for example http://127.0.0.1:8081")
	}
	path, _, _ := strings.Cut(u.Path, "/mcp")
	api := API{u.Scheme + "://" + u.Host + strings.TrimRight(path, "/"), access.Key, http.DefaultClient}
	if access.CAFile != "" {
		api.HTTP, err = certpool.Client(access.CAFile)
	}
	return api, err
}

// SocketScheme begins the address of a server that is reached by a Unix socket.
const SocketScheme = "unix://"

// socketHost is the address in requests over a socket.
const socketHost = "http://luanette"

// OverSocket splits the address of a server into the one for requests and the socket that they go
// to; "" if there is none.
func OverSocket(address string) (base, socket string) {
	if socket, ok := strings.CutPrefix(address, SocketScheme); ok {
		return socketHost, socket
	}
	return address, ""
}

// DialSocket connects to a Unix socket, whatever the address.
func DialSocket(path string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

// WithScheme adds http:// to an address without a scheme.
func WithScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// Open sends a request and returns the response if it is not an error. The caller closes
// its body.
func (a API) Open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	request, err := NewRequest(ctx, method, a.Base+path, body)
	if err != nil {
		return nil, err
	}
	return a.Do(request)
}

// send adds the key to a request to Base and sends it.
func (a API) send(request *http.Request) (*http.Response, error) {
	if !a.Key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+a.Key.Reveal())
	}
	response, err := a.HTTP.Do(request)
	if withURL := (*url.Error)(nil); errors.As(err, &withURL) {
		err = withURL.Err // the message names the address already
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "connect to %s", a.Base).WithHint("%s", cmp.Or(certpool.Hint(err), StartHint))
	}
	return response, nil
}

// Do is Open for a request to Base.
func (a API) Do(request *http.Request) (*http.Response, error) {
	response, err := a.send(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the response of %s", a.Base)
	}
	return nil, ErrorOf(response.StatusCode, raw)
}

// maxResponse is the maximum size of a response, in bytes.
const maxResponse = 256 << 20

// Send sends a request and returns the body of the response.
func (a API) Send(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	response, err := a.Open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return a.read(response)
}

// Answer sends a request to Base and returns the body of the response, whatever its status. The
// error is that of the status.
func (a API) Answer(request *http.Request) (json.RawMessage, error) {
	response, err := a.send(request)
	if err != nil {
		return nil, err
	}
	raw, err := a.read(response)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = ErrorOf(response.StatusCode, raw)
	}
	return raw, err
}

func (a API) read(response *http.Response) (json.RawMessage, error) {
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the response of %s", a.Base)
	}
	return raw, nil
}

// SendInto sends a request and decodes the response, unless into is nil.
func (a API) SendInto(ctx context.Context, method, path string, body, into any) error {
	raw, err := a.Send(ctx, method, path, body)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the response of %s", a.Base)
	}
	return nil
}

// NewRequest returns a request with a JSON body, which may be nil.
func NewRequest(ctx context.Context, method, target string, body any) (*http.Request, error) {
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

// ErrorOf returns the error in a response. The chat API has codes of its own, in capitals; for those
// the status determines the code.
func ErrorOf(status int, body []byte) error {
	var p struct{ Code, Message, Hint string }
	if json.Unmarshal(body, &p) != nil || p.Message == "" {
		return fault.New(codeOf(status), "the server responded with status %d", status).WithHint("check that it is a luanette of this version")
	}
	if status == http.StatusUnauthorized {
		return fault.New(fault.NeedsAuth, "the server requires a key: %s", p.Message).WithHint("%s", cmp.Or(p.Hint, KeyHint))
	}
	code := fault.Code(p.Code)
	if p.Code == "" || p.Code != strings.ToLower(p.Code) {
		code = codeOf(status)
	}
	if p.Hint == "" && (code == fault.NeedsAuth || code == fault.Denied) {
		p.Hint = KeyHint
	}
	return fault.New(code, "%s", p.Message).WithHint("%s", p.Hint)
}

func codeOf(status int) fault.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.NeedsAuth
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway:
		return fault.Unavailable
	default:
		return fault.Upstream
	}
}
